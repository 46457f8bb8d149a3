#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

/// Draws EDIT: the embeddings and learned matrices as tables of numbers. Landmarks "edit/…".
void draw_edit(const Frame& frame);

}  // namespace app::panels
