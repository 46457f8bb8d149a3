#pragma once

#include <string>

#include "app/session/view.hpp"
#include "core/graph/model.hpp"

namespace app {

/// Why decoding token by token would give other numbers than the model shows, or "" where row i of every
/// stage depends on tokens up to i alone: without dropout, mistakes, given numbers and keys of their own,
/// with a mask that hides every later key.
std::string why_not_decoded(const core::attention::Model& model);

/// Shows the decoding of the token before (−1) or after (+1) the one that is newest, from the first on; none
/// is left behind the last.
void step_decoding(View& view, std::size_t n_tokens, int by);

}  // namespace app
