#pragma once

#include <armadillo>
#include <string>
#include <vector>

namespace core::formats {

/// A matrix and what its rows and columns stand for, ready to be written to a file.
struct LabelledMatrix {
  arma::mat numbers;
  std::vector<std::string> row_labels;     ///< n_rows
  std::vector<std::string> column_labels;  ///< n_cols
};

}  // namespace core::formats
