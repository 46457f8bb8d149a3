#pragma once

#include <compare>
#include <cstddef>
#include <vector>

#include "core/base/shared_matrix.hpp"
#include "core/graph/stage.hpp"

namespace core::attention {

/// A stage that is given instead of computed, for all heads of all sequences.
///
/// The matrices have the shape and the meaning of the stage in the trace: weights are n_tokens × n_keys, a
/// dropout mask is of 0 and 1/(1 − rate). Any number may stand there, −inf and NaN as well.
struct GivenStage {
  Stage stage = Stage::weights;
  std::vector<SharedMatrix> matrices;  ///< [sequence · n + k], n of them a sequence: see n_matrices()
  friend bool operator==(const GivenStage&, const GivenStage&) = default;
};

/// Where a cell of a stage stands; head is 0 where the stage is not one a head, and the group where it is one
/// a group.
struct GivenPlace {
  Stage stage = Stage::weights;
  std::size_t sequence = 0, head = 0, row = 0, column = 0;
  friend auto operator<=>(const GivenPlace&, const GivenPlace&) = default;
};

/// One cell that was typed over, whether its stage is computed or given.
struct GivenCell {
  GivenPlace place;
  double value = 0;
  /// Same place and same bits.
  friend bool operator==(const GivenCell& a, const GivenCell& b);
};

/// What is given instead of computed.
struct Given {
  std::vector<GivenStage> stages;  ///< each once, in the order of the computation
  std::vector<GivenCell> cells;    ///< each once, sorted by place

  bool empty() const { return stages.empty() && cells.empty(); }
  /// The given stage, or nullptr when it is not given as a whole.
  const GivenStage* find(Stage stage) const;
  /// The cell that was typed over there, or nullptr.
  const GivenCell* find(const GivenPlace& place) const;
  friend bool operator==(const Given&, const Given&) = default;
};

/// Whether a stage can be given as a whole: embeddings are the model's own, and its mask has rules and cells.
bool can_be_given(Stage stage);

}  // namespace core::attention
