#pragma once

#include <armadillo>
#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/thread_pool.hpp"
#include "core/model/kernels.hpp"

/// Rows of float32 and the matrices that they are multiplied with.
namespace core::transformer {

/// Uninitialized bytes aligned to a cache line; large blocks use large pages where the system has them.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(std::size_t size);
  unsigned char* data() const { return bytes_.get(); }

 private:
  struct Deleter {
    std::size_t alignment;
    void operator()(unsigned char* bytes) const;
  };
  std::unique_ptr<unsigned char, Deleter> bytes_{nullptr, Deleter{64}};
};

/// A view of rows, a token per row.
struct RowsView {
  const float* numbers = nullptr;
  std::size_t stride = 0, n_rows = 0, width = 0;

  const float* row(std::size_t i) const { return numbers + i * stride; }
  RowsView rows(std::size_t first, std::size_t count) const { return {row(first), stride, count, width}; }
  bool is_finite() const;
  /// Returns n_rows × width.
  arma::fmat matrix() const;
};

/// Rows that own their memory, uninitialized at first. Behind each is room up to a whole panel, which kernels
/// need; rows do not all begin at the same offset in memory pages, as they would then share cache lines.
class RowBuffer {
 public:
  RowBuffer() = default;
  RowBuffer(std::size_t n_rows, std::size_t width);
  explicit RowBuffer(const arma::fmat& rows);
  explicit RowBuffer(const RowsView& rows);

  std::size_t n_rows() const { return n_rows_; }
  std::size_t width() const { return width_; }
  std::size_t stride() const { return stride_; }
  float* row(std::size_t i) { return reinterpret_cast<float*>(memory_.data()) + i * stride_; }
  const float* row(std::size_t i) const {
    return reinterpret_cast<const float*>(memory_.data()) + i * stride_;
  }
  operator RowsView() const { return {row(0), stride_, n_rows_, width_}; }
  RowsView view() const { return *this; }

 private:
  std::size_t n_rows_ = 0, width_ = 0, stride_ = 0;
  AlignedBuffer memory_;
};

/// Rows that grow while others read them; copies share the rows they have in common. Safe between threads.
class SharedRows {
 public:
  std::size_t n_rows() const { return n_rows_; }
  const float* row(std::size_t i) const { return shared_->rows.row(i); }
  operator RowsView() const { return shared_ ? shared_->rows.view().rows(0, n_rows_) : RowsView(); }
  RowsView view() const { return *this; }
  arma::fmat matrix() const { return view().matrix(); }
  void append(const RowsView& more);

 private:
  struct GrowingRows {
    explicit GrowingRows(RowBuffer all, std::size_t n) : rows(std::move(all)), n_used(n) {}
    RowBuffer rows;
    std::atomic<std::size_t> n_used;
  };
  std::shared_ptr<GrowingRows> shared_;
  std::size_t n_rows_ = 0;
};

/// A matrix to multiply rows with, stored in panels, with its numbers as in the file.
class Matrix {
 public:
  Matrix() = default;
  Matrix(Encoding encoding, std::size_t d_in, std::size_t d_out);

  bool is_empty() const { return d_out_ == 0; }
  std::size_t d_in() const { return d_in_; }
  std::size_t d_out() const { return d_out_; }
  std::size_t n_panels() const { return (d_out_ + panel_width - 1) / panel_width; }
  std::size_t n_bytes() const { return n_panels() * panel_bytes(encoding_, d_in_); }
  Encoding encoding() const { return encoding_; }
  const unsigned char* panel(std::size_t k) const {
    return memory_.data() + k * panel_bytes(encoding_, d_in_);
  }
  unsigned char* panel(std::size_t k) { return memory_.data() + k * panel_bytes(encoding_, d_in_); }

  /// Stores the first n_rows outputs of a panel, each d_in numbers in its encoding.
  void set_outputs(std::size_t panel, const unsigned char* rows, std::size_t n_rows);
  /// Reads the d_in numbers of an output as float32.
  void read_output(std::size_t output, float* to) const;

 private:
  Encoding encoding_ = Encoding::f32;
  std::size_t d_in_ = 0, d_out_ = 0;
  AlignedBuffer memory_;
};

/// Returns the bytes of a row of `count` numbers.
std::size_t row_bytes(Encoding encoding, std::size_t count);

/// The bias and the activation that a product applies to its sums.
struct Epilogue {
  const float* bias = nullptr;  ///< for all outputs of the panels, or nullptr
  std::optional<formats::checkpoints::Activation> activation = {};
};

/// Computes x · matrix, n_rows × d_out, into rows with room for whole panels. Threads share the outputs.
void multiply(const RowsView& x, const Matrix& matrix, const Epilogue& epilogue, float* to,
              std::size_t stride, ThreadPool& pool);

/// Calls work(first, count) for parts of n rows of about width numbers each.
template <class Work>
void for_parts_of_rows(std::size_t n_rows, std::size_t width, ThreadPool& pool, const Work& work) {
  constexpr std::size_t rows_at_once = 8;
  const std::size_t n_parts = (n_rows + rows_at_once - 1) / rows_at_once;
  pool.run(n_parts, n_rows * width, [&](std::size_t part) {
    const std::size_t first = part * rows_at_once;
    work(first, std::min(rows_at_once, n_rows - first));
  });
}

}  // namespace core::transformer
