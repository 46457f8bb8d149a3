#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

/// One stage as large as the view allows, with the others as thumbnails above it and the chosen row and
/// column as profiles.
void draw_large(const Frame& frame);

}  // namespace app::panels
