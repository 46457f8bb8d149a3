#pragma once

#include "core/attention/matrices.hpp"

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
/// Embeddings, projections and biases rounded to a precision.
Model with_rounded_inputs(const Model& model, attention::Precision precision);

}  // namespace core::mistakes
