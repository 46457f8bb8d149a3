#include "core/graph/stage_matrix.hpp"

#include <utility>

namespace core::attention {

StageMatrix::StageMatrix(StageMaker maker) : maker_(std::move(maker)), is_made_(false) {}

StageMatrix::StageMatrix(SharedMatrix numbers) : shared_(std::move(numbers)) {}

StageMatrix::StageMatrix(const StageMatrix& other)
    : shared_(other.shared_), numbers_(shared_ ? arma::mat() : other.made()) {}

StageMatrix::StageMatrix(StageMatrix&& other) noexcept
    : shared_(std::move(other.shared_)),
      maker_(std::move(other.maker_)),
      is_made_(other.is_made()),
      numbers_(std::move(other.numbers_)) {}

StageMatrix& StageMatrix::operator=(StageMatrix other) noexcept {
  shared_ = std::move(other.shared_);
  maker_ = std::move(other.maker_);
  numbers_ = std::move(other.numbers_);
  is_made_.store(other.is_made(), std::memory_order_release);
  return *this;
}

double StageMatrix::operator()(std::size_t row, std::size_t column) const {
  if (shared_) return shared_->at(row, column);
  return is_made() ? numbers_(row, column) : maker_.one_cell(row, column);
}

arma::rowvec StageMatrix::row(std::size_t i) const {
  if (shared_) return shared_->row(i);
  if (is_made()) return numbers_.row(i);
  arma::rowvec cells(n_cols());
  if (maker_.one_row) {
    maker_.one_row(i, cells.memptr());
    return cells;
  }
  for (std::size_t j = 0; j < cells.n_elem; ++j) cells(j) = maker_.one_cell(i, j);
  return cells;
}

std::optional<arma::mat> StageMatrix::give_away() const {
  if (!maker_.all || !is_made()) return std::nullopt;
  is_made_.store(false, std::memory_order_release);
  return std::exchange(numbers_, {});
}

void StageMatrix::renew() {
  static_cast<void>(give_away());
}

void StageMatrix::make() const {
  const std::lock_guard lock(making_);
  if (is_made()) return;  // another thread was faster
  numbers_ = maker_.all();
  is_made_.store(true, std::memory_order_release);
}

}  // namespace core::attention
