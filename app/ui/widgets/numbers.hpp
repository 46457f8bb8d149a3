#pragma once

#include "core/graph/stage_matrix.hpp"

namespace app::widgets {

/// The numbers of a heatmap: a matrix, or a stage that is not copied for a few of its cells.
class Numbers {
 public:
  explicit Numbers(const arma::mat& matrix)
      : n_rows(matrix.n_rows), n_cols(matrix.n_cols), matrix_(&matrix) {}
  explicit Numbers(const core::attention::StageMatrix& stage)
      : n_rows(stage.n_rows()), n_cols(stage.n_cols()), stage_(&stage) {}

  std::size_t n_rows, n_cols;
  double operator()(std::size_t row, std::size_t column) const {
    return matrix_ ? (*matrix_)(row, column) : (*stage_)(row, column);
  }
  /// All of them; made now where they are not kept.
  operator const arma::mat&() const {
    return matrix_ ? *matrix_ : **stage_;
  }  // NOLINT(google-explicit-constructor)

 private:
  const arma::mat* matrix_ = nullptr;
  const core::attention::StageMatrix* stage_ = nullptr;
};

}  // namespace app::widgets
