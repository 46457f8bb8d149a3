#pragma once

#include <vector>

#include "core/graph/model.hpp"

namespace core::attention {

/// Puts a given stage into its place among those that are given, instead of what was given there.
///
/// Cells typed over in it and in stages that the model no longer has are forgotten. When that changes the
/// number of keys, they are numbered, or are the tokens again, and cells of the mask outside are forgotten.
void give(Model& model, GivenStage stage);

/// Computes a stage again that was given; for the rest as give(). Nothing happens when it was not given.
void take_back(Model& model, Stage stage);

/// Forgets the typed-over cells whose stage the model does not have, or that lie outside of it.
void drop_lost_cells(Model& model);

/// How many tokens ask in stages that are given, of which there is at least one of at least one matrix.
std::size_t n_queries_of(const std::vector<GivenStage>& stages);

/// A model that knows nothing but what is given: tokens "0", "1", …, n_heads as many as there are matrices of
/// a sequence, no embeddings, no causal mask, and no scale when it would have to be guessed.
///
/// Throws core::Error when no stage is given or the stages are not as large as one another.
Model model_of(std::vector<GivenStage> stages, std::size_t n_sequences = 1);

}  // namespace core::attention
