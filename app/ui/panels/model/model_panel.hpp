#pragma once

#include <string>

#include "app/ui/frame.hpp"

namespace app::panels {

/// Returns the height that MODEL needs without scrolling, in pixels.
float model_panel_height(const Frame& frame);

/// Draws MODEL: the settings of the model, from the preset to the context length. Landmarks "model/…".
void draw_model(const Frame& frame);

/// Returns a model's additions to the paper, and with them its mask rules: "KV heads 4 → 2 · rotary halves ·
/// window 3, 0 · sink"; "" without additions.
std::string additions_words(const core::attention::Model& model, std::size_t sequence);

/// Draws the controls of the additions in a popup of that name with its top left corner there, if it is open.
void draw_additions_popup(const Frame& frame, const char* name, ImVec2 top_left);

/// Returns the mask rules other than the causal one: "window 3, 0 · prefix 2"; "" if there are none.
std::string mask_rules_words(const core::attention::Mask& mask, std::size_t sequence);

/// Draws the fields of those rules in a popup of that name with its top left corner there, if it is open.
void draw_mask_popup(const Frame& frame, const char* name, ImVec2 top_left);

/// Draws the rows of MODEL that small windows have under "more…", at the cursor, with labels of that width.
void draw_rows_under_more(const Frame& frame, float width, float labels_width);

}  // namespace app::panels
