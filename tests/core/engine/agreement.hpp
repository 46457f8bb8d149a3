#pragma once

#include <gtest/gtest.h>

#include "core/graph/attend.hpp"
#include "core/graph/stages.hpp"
#include "tests/support/random_model.hpp"

namespace core::attention::fast {

/// Every stage that the model has, in both traces: NaN and infinite in the same cells, else apart by at most
/// tolerance times the largest finite number of that stage of the reference (for the weights before dropout:
/// of that row), or times least where that is more.
testing::AssertionResult agree(const Model& model, const Trace& found, const Trace& reference,
                               double tolerance, double least = 0);

/// Numbers of such a size that scores stay below about ten, as in a trained model.
Model calm_model(support::Random& random, std::size_t n_tokens, std::size_t d_in, std::size_t d_out,
                 std::size_t n_heads);

}  // namespace core::attention::fast
