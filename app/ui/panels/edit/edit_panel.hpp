#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

/// EDIT: the embeddings and learned matrices as tables of numbers. Landmarks "edit/…".
void draw_edit(const Frame& frame);

/// The buttons "random" and "fill" with its menu: they write a whole matrix.
void draw_fill_buttons(const Frame& frame, core::editing::MatrixPlace place);

}  // namespace app::panels
