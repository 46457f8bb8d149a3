#pragma once

#include "core/graph/model.hpp"
#include "tests/support/json_fixture.hpp"

namespace golden {

/// Returns the model that a fixture's config and parameters describe.
core::attention::Model model_of(const support::Fixture& fixture);

/// Expects every tensor of the fixture in the model's stages, for every sequence of the fixture.
void expect_stages(const support::Fixture& fixture, const core::attention::Model& model);

/// Does the same with the engine that the window uses for large models.
void expect_stages_of_engine(const support::Fixture& fixture, const core::attention::Model& model);

/// Expects the numbers that the notebook prints.
void expect_printed(const support::Fixture& fixture, const core::attention::Model& model);

/// Expects embeddings and projections equal to the last bit.
void expect_same_inputs(const core::attention::Model& found, const core::attention::Model& expected);

}  // namespace golden
