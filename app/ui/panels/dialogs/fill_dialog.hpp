#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

/// Asks what a matrix is to be filled with.
void open_fill_dialog(const Frame& frame, core::editing::MatrixPlace place);

/// What stands inside Dialog::fill. Landmarks "fill/…".
void draw_fill_dialog(const Frame& frame);

/// Gives a stage its numbers, kept, pasted or from a file, or computes it again; View::given_stage. Landmarks
/// "give/…".
void draw_give_dialog(const Frame& frame);

}  // namespace app::panels
