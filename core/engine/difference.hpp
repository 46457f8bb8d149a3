#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "core/engine/projecting.hpp"
#include "core/graph/model.hpp"

namespace core::attention::fast {

/// What of the computation must be done again.
enum class Redo {
  nothing,
  everything,
  scores,             ///< of all heads, from the same queries and keys
  contexts,           ///< of all heads, from the same weights: another dropout mask
  embedding_row,      ///< one token's numbers
  memory_row,         ///< one key's, where keys have numbers of their own
  projection_number,  ///< one entry of a weight or a bias
  mask_rows,          ///< rows of which other keys are visible
  output              ///< the output alone
};

/// How one model differs from another, of the same shape, that an engine holds.
struct Difference {
  Redo redo = Redo::nothing;
  std::size_t row = 0, column = 0;       ///< of the embeddings, of those of the keys, or of the weight
  std::optional<double> increment = {};  ///< when one number is another: after − before
  Projected projected = Projected::queries;
  bool is_bias = false;                     ///< column is then that of the bias
  std::vector<std::size_t> mask_rows = {};  ///< ascending
};

/// What differs for one sequence; everything when it is more than one thing.
Difference difference(const Model& before, const Model& after, std::size_t sequence);

}  // namespace core::attention::fast
