#include "core/model/matrix.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>

#include "core/system/process.hpp"

namespace core::transformer {

#ifdef __x86_64__
extern const ModelKernels avx512_model_kernels, avx2_model_kernels;
#endif
extern const ModelKernels plain_model_kernels;

std::vector<const ModelKernels*> supported_kernels() {
  std::vector<const ModelKernels*> all;
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
    all.push_back(&avx512_model_kernels);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))  // they convert float16, too
    all.push_back(&avx2_model_kernels);
#endif
  all.push_back(&plain_model_kernels);
  return all;
}

const ModelKernels& kernels() {
  static const ModelKernels& best = *supported_kernels().front();
  return best;
}

AlignedBuffer::AlignedBuffer(std::size_t size) {
  constexpr std::size_t large = std::size_t{2} << 20;
  const std::size_t alignment = size >= large ? large : 64;
  bytes_ = {static_cast<unsigned char*>(::operator new(size, std::align_val_t(alignment))),
            Deleter{alignment}};
  if (size >= large) system::advise_huge_pages(bytes_.get(), size / large * large);
}

void AlignedBuffer::Deleter::operator()(unsigned char* bytes) const {
  ::operator delete(bytes, std::align_val_t(alignment));
}

bool RowsView::is_finite() const {
  for (std::size_t i = 0; i < n_rows; ++i)
    if (!std::all_of(row(i), row(i) + width, [](float number) { return std::isfinite(number); }))
      return false;
  return true;
}

arma::fmat RowsView::matrix() const {
  arma::fmat result(n_rows, width, arma::fill::none);
  for (std::size_t i = 0; i < n_rows; ++i)
    for (std::size_t j = 0; j < width; ++j) result.at(i, j) = row(i)[j];
  return result;
}

RowBuffer::RowBuffer(std::size_t n_rows, std::size_t width)
    : n_rows_(n_rows), width_(width), stride_((width + panel_width - 1) / panel_width * panel_width) {
  constexpr std::size_t conflicting = 256, line = 16;
  if (stride_ % conflicting == 0) stride_ += line;
  memory_ = AlignedBuffer(std::max<std::size_t>(n_rows * stride_, 1) * sizeof(float));
}

RowBuffer::RowBuffer(const arma::fmat& rows) : RowBuffer(rows.n_rows, rows.n_cols) {
  for (std::size_t i = 0; i < n_rows_; ++i)
    for (std::size_t j = 0; j < width_; ++j) row(i)[j] = rows.at(i, j);
}

RowBuffer::RowBuffer(const RowsView& rows) : RowBuffer(rows.n_rows, rows.width) {
  for (std::size_t i = 0; i < n_rows_; ++i) std::copy_n(rows.row(i), width_, row(i));
}

void SharedRows::append(const RowsView& more) {
  const std::size_t n_after = n_rows_ + more.n_rows;
  std::size_t n_used = n_rows_;
  const bool has_room = shared_ && n_after <= shared_->rows.n_rows() &&
                        shared_->n_used.compare_exchange_strong(n_used, n_after);
  if (!has_room) {                              // or another copy has appended to the same rows
    constexpr std::size_t min_spare_rows = 16;  // for more tokens
    RowBuffer larger(n_after + n_rows_ / 2 + min_spare_rows, more.width);
    for (std::size_t i = 0; i < n_rows_; ++i) std::copy_n(row(i), more.width, larger.row(i));
    shared_ = std::make_shared<GrowingRows>(std::move(larger), n_after);
  }
  for (std::size_t i = 0; i < more.n_rows; ++i)
    std::copy_n(more.row(i), more.width, shared_->rows.row(n_rows_ + i));
  n_rows_ = n_after;
}

std::size_t row_bytes(Encoding encoding, std::size_t count) {
  return panel_bytes(encoding, count) / panel_width;
}

Matrix::Matrix(Encoding encoding, std::size_t d_in, std::size_t d_out)
    : encoding_(encoding), d_in_(d_in), d_out_(d_out), memory_(std::max<std::size_t>(n_bytes(), 1)) {}

namespace {

constexpr std::size_t q8_row_block = 2 + q8_block;  // a scale in float16, and the numbers

/// Copies the adjacent items of a row to places panel_width items apart.
template <class Item>
void spread_row(const unsigned char* row, std::size_t count, unsigned char* to) {
  for (std::size_t k = 0; k < count; ++k)
    std::memcpy(to + k * panel_width * sizeof(Item), row + k * sizeof(Item), sizeof(Item));
}

}  // namespace

void Matrix::set_outputs(std::size_t k, const unsigned char* rows, std::size_t n_rows) {
  unsigned char* to = panel(k);
  const std::size_t bytes = row_bytes(encoding_, d_in_);
  if (encoding_ == Encoding::f32) {
    kernels().pack_panel(reinterpret_cast<const float*>(rows), d_in_, n_rows, d_in_,
                         reinterpret_cast<float*>(to));
    return;
  }
  if (n_rows < panel_width) std::memset(to, 0, panel_bytes(encoding_, d_in_));
  for (std::size_t i = 0; i < n_rows; ++i) {
    const unsigned char* row = rows + i * bytes;
    if (encoding_ != Encoding::q8_0) {
      spread_row<std::uint16_t>(row, d_in_, to + i * sizeof(std::uint16_t));
      continue;
    }
    for (std::size_t b = 0; b < d_in_ / q8_block; ++b) {
      unsigned char* block = to + panel_bytes(encoding_, b * q8_block);
      std::memcpy(block + 2 * i, row + b * q8_row_block, 2);
      spread_row<unsigned char>(row + b * q8_row_block + 2, q8_block, block + 2 * panel_width + i);
    }
  }
}

void Matrix::read_output(std::size_t output, float* to) const {
  const unsigned char* from = panel(output / panel_width);
  const std::size_t column = output % panel_width;
  if (encoding_ == Encoding::f32) {
    const auto* numbers = reinterpret_cast<const float*>(from) + column;
    for (std::size_t k = 0; k < d_in_; ++k) to[k] = numbers[k * panel_width];
    return;
  }
  constexpr std::size_t at_once = 32;
  float widened[at_once * panel_width];
  for (std::size_t k = 0; k < d_in_; k += at_once) {
    const std::size_t count = std::min(at_once, d_in_ - k);
    kernels().widen(from, encoding_, k, count, widened);
    for (std::size_t j = 0; j < count; ++j) to[k + j] = widened[j * panel_width + column];
  }
}

void multiply(const RowsView& x, const Matrix& matrix, const Epilogue& epilogue, float* to,
              std::size_t stride, ThreadPool& pool) {
  if (x.n_rows == 0) return;
  // A block of this many rows stays in the second-level cache.
  constexpr std::size_t rows_at_once = 512, panels_at_once = 2;
  const std::size_t n_panels = matrix.n_panels(), n_blocks = (x.n_rows + rows_at_once - 1) / rows_at_once;
  // One row costs no more than reading the panels: a few parts keep each read long and sequential.
  const std::size_t n_parts =
      x.n_rows > 1 ? (n_panels + panels_at_once - 1) / panels_at_once
                   : std::clamp<std::size_t>(n_panels / panels_at_once, 1, 4 * pool.n_threads());
  pool.run(n_parts * n_blocks, x.n_rows * matrix.d_in() * matrix.d_out(), [&](std::size_t task) {
    const std::size_t first_row = task / n_parts * rows_at_once, part = task % n_parts,
                      count = std::min(rows_at_once, x.n_rows - first_row);
    const auto panel_of = [&](std::size_t k) {  // parts begin at pairs of panels
      return std::min(n_panels, (n_panels + 1) / 2 * k / n_parts * 2);
    };
    const std::size_t begin = panel_of(part), end = panel_of(part + 1);
    float* y = to + first_row * stride;
    kernels().product({x.row(first_row), x.stride, count, matrix.panel(0), matrix.encoding(), matrix.d_in(),
                       epilogue.bias, y, stride, begin, end});
    if (!epilogue.activation) return;
    for (std::size_t i = 0; i < count; ++i)
      kernels().activate(y + i * stride + begin * panel_width, nullptr, (end - begin) * panel_width,
                         *epilogue.activation);
  });
}

}  // namespace core::transformer
