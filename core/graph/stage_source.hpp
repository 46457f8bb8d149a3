#pragma once

#include "core/graph/shown_stages.hpp"
#include "core/graph/stage_matrix.hpp"

namespace core::attention {

/// Where the stages of one sequence come from: each is given, or computed, or not known.
class StageSource {
 public:
  /// The model must outlive it.
  StageSource(const Model& model, std::size_t sequence);

  bool shows(Stage stage) const { return contains(shown_, stage); }
  bool computes(Stage stage) const { return shows(stage) && !model_.given.find(stage); }

  /// A stage, of one head when it is one a head or a group: given, or else computed, with the cells that were
  /// typed over.
  ///
  /// Empty when it is not known; then nothing is computed.
  template <class Formula>
  StageMatrix operator()(Stage stage, std::size_t head, Formula formula) const {
    if (!shows(stage)) return {};
    const GivenStage* given = model_.given.find(stage);
    SharedMatrix numbers =
        given ? given->matrices[sequence_ * n_matrices(model_, stage) + matrix_of_head(model_, stage, head)]
              : SharedMatrix(arma::mat(formula()));
    type_over(numbers, stage, matrix_of_head(model_, stage, head));
    return numbers;
  }

 private:
  void type_over(SharedMatrix& numbers, Stage stage, std::size_t head) const;

  const Model& model_;
  std::size_t sequence_;
  StageSet shown_;
};

}  // namespace core::attention
