#pragma once

#include <compare>
#include <cstddef>
#include <vector>

#include "core/base/shared_matrix.hpp"
#include "core/graph/stage.hpp"

namespace core::attention {

/// Stage that is given instead of computed, for all heads of all sequences.
///
/// The matrices have the shape and the meaning of the stage in the trace: weights are n_tokens × n_keys, a
/// dropout mask has 0 and 1/(1 − rate). Any number is allowed, −inf and NaN too.
struct GivenStage {
  Stage stage = Stage::weights;
  std::vector<SharedMatrix> matrices;  ///< [sequence · n + k], n per sequence: see n_matrices()
  friend bool operator==(const GivenStage&, const GivenStage&) = default;
};

/// Place of a cell of a stage; head is 0 for stages without heads, and the KV head for stages with one matrix
/// per KV head.
struct GivenCellAddress {
  Stage stage = Stage::weights;
  std::size_t sequence = 0, head = 0, row = 0, column = 0;
  friend auto operator<=>(const GivenCellAddress&, const GivenCellAddress&) = default;
};

/// One overridden cell, of a computed or a given stage.
struct GivenCell {
  GivenCellAddress place;
  double value = 0;
  /// Compares places and bits.
  friend bool operator==(const GivenCell& a, const GivenCell& b);
};

/// Stages and cells that are given instead of computed.
struct Given {
  std::vector<GivenStage> stages;  ///< each once, in the order of the computation
  std::vector<GivenCell> cells;    ///< each once, sorted by place

  bool empty() const { return stages.empty() && cells.empty(); }
  /// Returns the given stage, or nullptr if it is not given as a whole.
  const GivenStage* find(Stage stage) const;
  /// Returns the overridden cell at a place, or nullptr.
  const GivenCell* find(const GivenCellAddress& place) const;
  friend bool operator==(const Given&, const Given&) = default;
};

/// Returns whether a stage can be given as a whole: not embeddings, nor the mask, which has rules and cells.
bool can_be_given(Stage stage);

}  // namespace core::attention
