#pragma once

#include <armadillo>
#include <cstddef>

#include "core/graph/stage_matrix.hpp"

namespace core::attention {

/// What one row of a matrix says at a glance; numbers that are not finite are left out.
struct RowFacts {
  double sum = 0;
  double smallest = 0, largest = 0;
  std::size_t where = 0;  ///< column of the largest
  double entropy_bits =
      0;  ///< −Σ p·log2 p of the row divided by its sum; 0 for rows that are no distribution
  double effective_count =
      0;  ///< 2^entropy: how many equal weights would be as spread; 0 when the sum is not positive
};

/// The facts of a row of numbers.
RowFacts row_facts(const arma::rowvec& numbers);
/// The facts of row i of a matrix, or of a stage, of which no more than that row is made.
RowFacts row_facts(const arma::mat& numbers, std::size_t row);
RowFacts row_facts(const StageMatrix& numbers, std::size_t row);

}  // namespace core::attention
