#pragma once

#include <string>

#include "app/ui/frame.hpp"

namespace app::panels {

/// The height that MODEL needs without scrolling, in pixels.
float model_panel_height(const Frame& frame);

/// MODEL: what is computed, from the preset to the context length. Landmarks "model/…".
void draw_model(const Frame& frame);

/// What a model adds to the paper and which keys it hides, in words: "grouped 4 → 2 · rotary halves · window
/// 3, 0 · sink"; "" when it adds nothing.
std::string additions_words(const core::attention::Model& model, std::size_t sequence);

/// The switches and numbers of all that, in a popup of that name with its top left corner there, where it is
/// open.
void draw_additions_popup(const Frame& frame, const char* name, ImVec2 top_left);

/// What beside the causal rule hides keys, in words: "window 3 left, 0 right · prefix 2"; "" when nothing
/// does.
std::string mask_rules_words(const core::attention::Mask& mask, std::size_t sequence);

/// The fields of those rules in a popup of that name, where it is open.
void draw_mask_popup(const Frame& frame, const char* name);

}  // namespace app::panels
