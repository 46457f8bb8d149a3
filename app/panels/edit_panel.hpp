#pragma once

#include "app/frame.hpp"

namespace app::panels {

/// EDIT: the embeddings and learned matrices as tables of numbers. Pads itself; landmarks "edit/…".
void draw_edit_panel(const Frame& frame);

}  // namespace app::panels
