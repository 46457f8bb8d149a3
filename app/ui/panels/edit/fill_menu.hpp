#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

/// The buttons "random" and "fill" with its menu: they write a whole matrix.
void draw_fill_buttons(const Frame& frame, core::editing::MatrixPlace place);

}  // namespace app::panels
