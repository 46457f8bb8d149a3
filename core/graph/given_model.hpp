#pragma once

#include <vector>

#include "core/graph/model.hpp"

namespace core::attention {

/// Sets a given stage, replacing an earlier one.
///
/// Removes overridden cells of it and of stages that the model no longer has. If the number of keys changes,
/// they are named by number, or after the tokens again, and mask cells beyond them are removed.
void set_given_stage(Model& model, GivenStage stage);

/// Removes a given stage, if it is given, so that it is computed again; otherwise like set_given_stage().
void clear_given_stage(Model& model, Stage stage);

/// Removes overridden cells whose stage the model does not have, or that lie outside it.
void remove_invalid_overrides(Model& model);

/// Returns the number of queries in given stages, which have at least one stage with at least one matrix.
std::size_t n_queries_of(const std::vector<GivenStage>& stages);

/// Returns a model that is known only by given stages: tokens "0", "1", …, as many heads as matrices per
/// sequence, no embeddings, no causal mask, and no scale if it would have to be guessed.
///
/// Throws core::Error if no stage is given or their sizes do not match.
Model model_of(std::vector<GivenStage> stages, std::size_t n_sequences = 1);

}  // namespace core::attention
