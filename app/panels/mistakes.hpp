#pragma once

#include "app/frame.hpp"

namespace app::panels {

/// Lines of a menu: each switches a mistake on or off as an edit.
void draw_mistakes_menu(const Frame& frame);

}  // namespace app::panels
