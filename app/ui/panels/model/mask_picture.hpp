#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

/// The mask of the shown sequence as a picture, queries by keys, colored by what shows or hides each cell,
/// with a key to the colors below; a stroke over cells hides or shows them as it does with the first.
///
/// Draws at the cursor, as wide as asked, and leaves it below.
void draw_mask_picture(const Frame& frame, float width);

}  // namespace app::panels
