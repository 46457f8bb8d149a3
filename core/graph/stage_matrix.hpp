#pragma once

#include <armadillo>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

#include "core/base/shared_matrix.hpp"

namespace core::attention {

/// How a stage that is not stored is computed on demand.
struct LazyStage {
  std::size_t n_rows = 0, n_cols = 0;
  std::function<arma::mat()> all;                                       ///< n_rows × n_cols
  std::function<double(std::size_t row, std::size_t column)> one_cell;  ///< the same number as in all()
  /// The same n_cols numbers; if not set, computed cell by cell.
  std::function<void(std::size_t row, double* numbers)> one_row = {};
};

/// One stage of a trace: a matrix, or a maker that computes it when it is first read.
///
/// The result is kept until invalidate(). Several threads may read at once. A copy always holds its own
/// numbers, so that it does not change with the maker's source; making one costs as much as all().
class StageMatrix {
 public:
  StageMatrix() = default;
  /// Holds a matrix, or an expression that yields one.
  template <std::convertible_to<arma::mat> Numbers>
  requires(!std::same_as<std::remove_cvref_t<Numbers>, StageMatrix> &&
           !std::same_as<std::remove_cvref_t<Numbers>, SharedMatrix>) StageMatrix(Numbers&& numbers)
      : numbers_(std::forward<Numbers>(numbers)) {}  // NOLINT(google-explicit-constructor)
  /// Shares numbers that a model holds instead of copying them.
  StageMatrix(SharedMatrix numbers);  // NOLINT(google-explicit-constructor)
  explicit StageMatrix(LazyStage lazy);
  StageMatrix(const StageMatrix& other);
  StageMatrix(StageMatrix&& other) noexcept;
  StageMatrix& operator=(StageMatrix other) noexcept;
  ~StageMatrix() = default;

  operator const arma::mat&() const { return materialized(); }  // NOLINT(google-explicit-constructor)
  const arma::mat& operator*() const { return materialized(); }
  const arma::mat* operator->() const { return &materialized(); }

  /// Returns one number without computing the whole stage.
  double operator()(std::size_t row, std::size_t column) const;
  /// Returns one row, 1 × n_cols, without computing the whole stage.
  arma::rowvec row(std::size_t i) const;

  std::size_t n_rows() const {
    return shared_ ? shared_->n_rows() : is_materialized() ? numbers_.n_rows : lazy_.n_rows;
  }
  std::size_t n_cols() const {
    return shared_ ? shared_->n_cols() : is_materialized() ? numbers_.n_cols : lazy_.n_cols;
  }

  /// Returns whether all of it can be read at no cost.
  bool is_materialized() const { return is_materialized_.load(std::memory_order_acquire); }

  /// Returns the computed matrix and forgets it; the next read computes it again. Nobody may be reading.
  /// Returns nothing for a plain matrix.
  std::optional<arma::mat> release() const;
  /// Forgets the computed matrix after a change of its source; nobody may be reading. A plain matrix stays.
  void invalidate();

 private:
  const arma::mat& materialized() const {
    if (!is_materialized()) materialize();
    return numbers();
  }
  const arma::mat& numbers() const { return shared_ ? **shared_ : numbers_; }
  void materialize() const;

  std::optional<SharedMatrix> shared_;
  LazyStage lazy_;
  mutable std::mutex mutex_;
  mutable std::atomic<bool> is_materialized_{true};
  mutable arma::mat numbers_;
};

}  // namespace core::attention
