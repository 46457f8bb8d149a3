#pragma once

#include <string>

#include "app/ui/frame.hpp"

namespace app::panels {

/// What a model adds to the paper and which keys it hides, in words: "grouped 4 → 2 · rotary halves · window
/// 3, 0 · sink"; "" when it adds nothing.
std::string additions_words(const core::attention::Model& model, std::size_t sequence);

/// The switches and numbers of all that, in a popup of that name with its top left corner there, where it is
/// open.
void draw_additions_popup(const Frame& frame, const char* name, ImVec2 top_left);

}  // namespace app::panels
