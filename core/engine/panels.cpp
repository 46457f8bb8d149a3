#include "core/engine/panels.hpp"

namespace core::attention::fast {
namespace {

constexpr std::size_t cached_numbers = 73728;  // 576 KiB

}  // namespace

Panels::Panels(const Kernels& kernels, std::size_t n_rows, std::size_t depth, Buffer& memory)
    : kernels_(&kernels), n_rows_(n_rows), depth_(depth), width_(kernels.panel_width) {
  if (memory.size() < n_panels() * width_ * depth) memory = Buffer(n_panels() * width_ * depth);
  numbers_ = memory.data();
}

void Panels::fill(std::size_t panel, const arma::mat& matrix, std::size_t first_row) {
  double* to = numbers_ + panel * width_ * depth_;
  const std::size_t first = first_row + panel * width_, n = rows_of(panel);
  for (std::size_t c = 0; c < depth_; ++c, to += width_) {
    std::copy_n(matrix.colptr(c) + first, n, to);
    std::fill(to + n, to + width_, 0.0);
  }
}

void Panels::fill(std::size_t panel, const double* rows) {
  double* to = numbers_ + panel * width_ * depth_;
  const double* from = rows + panel * width_ * depth_;
  const std::size_t n = rows_of(panel);
  for (std::size_t c = 0; c < depth_; ++c, ++from, to += width_) {
    for (std::size_t i = 0; i < n; ++i) to[i] = from[i * depth_];
    std::fill(to + n, to + width_, 0.0);
  }
}

std::size_t Panels::at_once() const {
  const std::size_t cached = cached_numbers / (width_ * std::max<std::size_t>(depth_, 1));
  return std::clamp<std::size_t>(cached, 1, most_at_once);
}

}  // namespace core::attention::fast
