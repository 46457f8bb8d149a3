#pragma once

#include "app/session/view.hpp"
#include "core/graph/model.hpp"

namespace app {

/// Lets go of everything that is looked at and that a model does not have: heads, cells, tokens, stages,
/// matrices.
void keep_within(LookedAt& view, const core::attention::Model& model);

/// The matrix that the editor shows: the one that was chosen, or the embeddings where the model has no such.
core::editing::MatrixPlace edited_place(const Look& look, const core::attention::Model& model);

}  // namespace app
