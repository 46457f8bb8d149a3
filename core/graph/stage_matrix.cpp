#include "core/graph/stage_matrix.hpp"

namespace core::attention {

StageMatrix::StageMatrix(LazyStage lazy) : lazy_(std::move(lazy)), is_materialized_(false) {}

StageMatrix::StageMatrix(SharedMatrix numbers) : shared_(std::move(numbers)) {}

StageMatrix::StageMatrix(const StageMatrix& other)
    : shared_(other.shared_), numbers_(shared_ ? arma::mat() : other.materialized()) {}

StageMatrix::StageMatrix(StageMatrix&& other) noexcept
    : shared_(std::move(other.shared_)),
      lazy_(std::move(other.lazy_)),
      is_materialized_(other.is_materialized()),
      numbers_(std::move(other.numbers_)) {}

StageMatrix& StageMatrix::operator=(StageMatrix other) noexcept {
  shared_ = std::move(other.shared_);
  lazy_ = std::move(other.lazy_);
  numbers_ = std::move(other.numbers_);
  is_materialized_.store(other.is_materialized(), std::memory_order_release);
  return *this;
}

double StageMatrix::operator()(std::size_t row, std::size_t column) const {
  if (shared_) return shared_->at(row, column);
  return is_materialized() ? numbers_(row, column) : lazy_.one_cell(row, column);
}

arma::rowvec StageMatrix::row(std::size_t i) const {
  if (shared_) return shared_->row(i);
  if (is_materialized()) return numbers_.row(i);
  arma::rowvec cells(n_cols());
  if (lazy_.one_row) {
    lazy_.one_row(i, cells.memptr());
    return cells;
  }
  for (std::size_t j = 0; j < cells.n_elem; ++j) cells(j) = lazy_.one_cell(i, j);
  return cells;
}

std::optional<arma::mat> StageMatrix::release() const {
  if (!lazy_.all || !is_materialized()) return std::nullopt;
  is_materialized_.store(false, std::memory_order_release);
  return std::exchange(numbers_, {});
}

void StageMatrix::invalidate() {
  static_cast<void>(release());
}

void StageMatrix::materialize() const {
  const std::lock_guard lock(mutex_);
  if (is_materialized()) return;  // another thread was faster
  numbers_ = lazy_.all();
  is_materialized_.store(true, std::memory_order_release);
}

}  // namespace core::attention
