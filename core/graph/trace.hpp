#pragma once

#include <array>
#include <utility>
#include <vector>

#include "core/graph/stage.hpp"
#include "core/graph/stage_matrix.hpp"

namespace core::attention {

/// Every stage of attention for one sequence, none overwritten: a matrix for each head, or one for all heads,
/// of the shape that shape_of() tells. A stage that the model does not have, or of which nothing is known, is
/// empty.
///
/// The mask is 1 where a key is visible, and 1 everywhere when it is not known. Keys and values of a head are
/// those of its KV head. Masked scores equal the stage before them when the mask comes after the softmax. The
/// dropout mask is 0 for dropped and 1/(1 − rate) for kept weights.
class Trace {
 public:
  explicit Trace(std::size_t n_heads = 0) : heads_(n_heads) {}

  std::size_t sequence = 0;  ///< which one of the batch

  std::size_t n_heads() const { return heads_.size(); }
  /// Returns the matrix of a stage; the head counts only where the stage is one per head. Throws
  /// std::out_of_range for a head that is not there.
  const StageMatrix& at(Stage stage, std::size_t head = 0) const {
    return (info(stage).per_head ? heads_.at(head) : shared_)[static_cast<std::size_t>(stage)];
  }
  StageMatrix& at(Stage stage, std::size_t head = 0) {
    return const_cast<StageMatrix&>(std::as_const(*this).at(stage, head));
  }

 private:
  using Matrices = std::array<StageMatrix, n_stages>;

  Matrices shared_;
  std::vector<Matrices> heads_;
};

}  // namespace core::attention
