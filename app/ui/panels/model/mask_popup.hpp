#pragma once

#include <string>

#include "app/ui/frame.hpp"

namespace app::panels {

/// The mask of the shown sequence as a picture, queries by keys, colored by what shows or hides each cell,
/// with a key to the colors below; a stroke over cells hides or shows them as it does with the first.
///
/// Draws at the cursor, as wide as asked, and leaves it below.
void draw_mask_picture(const Frame& frame, float width);

/// What beside the causal rule hides keys, in words: "window 3 left, 0 right · prefix 2"; "" when nothing
/// does.
std::string mask_rules_words(const core::attention::Mask& mask, std::size_t sequence);

/// The fields of those rules in a popup of that name, where it is open.
void draw_mask_popup(const Frame& frame, const char* name);

}  // namespace app::panels
