#pragma once

#include "core/graph/matrices.hpp"

/// Models with one thing gone wrong; where there is nothing to go wrong, the model as it is.
namespace core::mistakes {

using attention::Linear;
using attention::Model;
using attention::Part;

Model with_scale(const Model& model, attention::Scale scale);
/// The mask with queries and keys in each other's place, cells switched by hand too.
Model with_mask_transposed(const Model& model);
Model without_mask(const Model& model);
/// The square weight of a projection by its transpose.
Model with_weight_transposed(const Model& model, Part part);
Model without_bias(const Model& model, Part part);
/// The query projection in the place of the key projection and the other way round.
Model with_projections_swapped(const Model& model);
Model without_output_projection(const Model& model);
/// The heads in another number, which divides d_out, and their groups with them; not where something is given
/// for each head.
Model with_heads(const Model& model, std::size_t n_heads);
/// The same with a number that people take: twice as many heads, half of them, or one.
Model split_otherwise(const Model& model);
/// Queries see the keys of padding, and those that are hidden by hand from each of them.
Model with_padding_seen(const Model& model);
/// One key more that no query of any sequence sees.
Model with_key_hidden(const Model& model, std::size_t key);
/// The softmax block by block; with only as many blocks as make a difference.
Model with_blocks(const Model& model, attention::Blocks blocks);
/// The largest power of two that is at most half of the keys.
std::size_t likely_block_size(const Model& model);
/// Embeddings, projections, biases, what is added and given stages rounded to a precision.
Model with_rounded_inputs(const Model& model, attention::Precision precision);

}  // namespace core::mistakes
