#pragma once

#include <array>
#include <utility>
#include <vector>

#include "core/graph/stage.hpp"
#include "core/graph/stage_matrix.hpp"

namespace core::attention {

/// All stages of attention for one sequence: a matrix for each head or one for all heads, of the shape that
/// shape_of() returns. Stages that the model does not have, or that are unknown, are empty.
///
/// The mask is 1 for unmasked keys, and 1 everywhere if it is unknown. Keys and values of a head are those of
/// its KV head. Masked scores equal the previous stage if the mask comes after the softmax. The dropout mask
/// is 0 for dropped and dropout_scale() for kept weights.
class Trace {
 public:
  explicit Trace(std::size_t n_heads = 0) : heads_(n_heads) {}

  std::size_t sequence = 0;  ///< index in the batch

  std::size_t n_heads() const { return heads_.size(); }
  /// Returns the matrix of a stage; `head` matters only for stages with one matrix per head. Throws
  /// std::out_of_range for a head that does not exist.
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
