#pragma once

#include <armadillo>
#include <vector>

#include "core/base/random.hpp"
#include "core/graph/model.hpp"

namespace core::attention {

/// The dropout masks of one sequence, one for each head: n_tokens × n_keys of 0 and 1/(1 − rate).
///
/// They are given in the model or drawn as nn.Dropout draws them for weights of shape
/// [sequence][head][query][key] right after manual_seed(seed); ones when dropout is not active.
std::vector<arma::mat> sampled_dropout_masks(const Model& model, std::size_t sequence);

/// The mask of n_rows × n_columns whose numbers, row by row, are those from first on: 0 or the survivor
/// factor.
arma::mat mask_of(const random::Bits& kept, std::size_t first, std::size_t n_rows, std::size_t n_columns,
                  const Dropout& dropout);

/// Which of the next n numbers dropout keeps, in its own stream; a given mask counts for nothing here.
random::Bits kept(random::Generator& generator, const Dropout& dropout, std::size_t n);

}  // namespace core::attention
