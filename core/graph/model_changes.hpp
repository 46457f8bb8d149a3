#pragma once

#include "core/graph/model.hpp"

/// Models with one change; where there is nothing to change, the model as it is.
namespace core::attention {

Model with_scale(const Model& model, Scale scale);
/// Returns the model with another number of heads, which divides d_out, and of KV heads with it; unchanged if
/// something is given for each head.
Model with_heads(const Model& model, std::size_t n_heads);
/// Returns the model whose queries attend to padding keys and to keys masked by hand for every query.
Model with_padding_unmasked(const Model& model);
/// Returns the model with one more key masked for all queries of all sequences.
Model with_key_masked(const Model& model, std::size_t key);
/// Returns the largest power of two that is at most half the number of keys.
std::size_t default_block_size(const Model& model);
/// Returns the model with embeddings, projections, biases, additions and given stages rounded to a precision.
Model with_rounded_inputs(const Model& model, Precision precision);

}  // namespace core::attention
