#pragma once

#include <gtest/gtest.h>

#include "core/graph/attend.hpp"
#include "core/graph/stages.hpp"
#include "tests/support/random_model.hpp"

namespace core::attention::fast {

/// Compares every stage of the model: NaN and infinities in the same cells, other numbers within tolerance
/// times the largest finite number of the reference's stage (for weights before dropout: of its row), or
/// times `least` if that is larger.
testing::AssertionResult agree(const Model& model, const Trace& found, const Trace& reference,
                               double tolerance, double least = 0);

/// Returns a model whose scores stay below about ten, as in a trained one.
Model calm_model(support::Random& random, std::size_t n_tokens, std::size_t d_in, std::size_t d_out,
                 std::size_t n_heads);

}  // namespace core::attention::fast
