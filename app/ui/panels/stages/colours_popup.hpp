#pragma once

#include <string>

#include "app/ui/frame.hpp"

namespace app::panels {

/// "colours by matrix", with what else was chosen: ", log", ", locked".
std::string colours_words(const ColourChoice& choice);

/// The popup of that name, when it is open, with its top right corner there: how numbers become colours.
void draw_colours_popup(const Frame& frame, const char* name, ImVec2 top_right);

}  // namespace app::panels
