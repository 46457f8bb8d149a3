#pragma once

#include <armadillo>
#include <vector>

#include "core/base/random.hpp"
#include "core/graph/model.hpp"

namespace core::attention {

/// Returns the dropout masks of one sequence, one for each head: n_tokens × n_keys of 0 and dropout_scale().
///
/// They are given in the model or sampled as nn.Dropout does for weights of shape
/// [sequence][head][query][key] right after manual_seed(seed); ones if dropout is not active.
std::vector<arma::mat> sampled_dropout_masks(const Model& model, std::size_t sequence);

/// Returns a mask of n_rows × n_columns from the bits starting at `first`, row-major: 0 or dropout_scale().
arma::mat mask_from_bits(const random::Bits& kept, std::size_t first, std::size_t n_rows,
                         std::size_t n_columns, const Dropout& dropout);

/// Returns which of the next n numbers dropout keeps, in its own stream; ignores a given mask.
random::Bits kept(random::Generator& generator, const Dropout& dropout, std::size_t n);

}  // namespace core::attention
