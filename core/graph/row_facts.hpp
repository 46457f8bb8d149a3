#pragma once

#include <armadillo>
#include <cstddef>

#include "core/graph/stage_matrix.hpp"

namespace core::attention {

/// Summary of one row of a matrix; non-finite numbers are ignored.
struct RowStatistics {
  double sum = 0;
  double smallest = 0, largest = 0;
  std::size_t argmax = 0;   ///< column of the largest
  double entropy_bits = 0;  ///< −Σ p·log2 p of the row divided by its sum; 0 if it is not a distribution
  double effective_count = 0;  ///< 2^entropy, the effective number of keys; 0 if it is not a distribution
};

/// Returns the facts of a row of numbers.
RowStatistics row_statistics(const arma::rowvec& numbers);
/// Returns the facts of row i of a matrix, or of a stage, of which it computes only that row.
RowStatistics row_statistics(const arma::mat& numbers, std::size_t row);
RowStatistics row_statistics(const StageMatrix& numbers, std::size_t row);

}  // namespace core::attention
