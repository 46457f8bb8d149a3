#pragma once

#include <string>

#include "app/ui/frame.hpp"

namespace app::panels {

/// "colours by matrix", with what else was chosen: ", log", ", locked".
std::string colors_words(const ColorChoice& choice);

/// The popup of that name, when it is open, with its top right corner there: how numbers become colors.
void draw_colors_popup(const Frame& frame, const char* name, ImVec2 top_right);

}  // namespace app::panels
