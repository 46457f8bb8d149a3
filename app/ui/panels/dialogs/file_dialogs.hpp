#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

// What stands inside the dialogs that look for a place on the disk.
void draw_open_dialog(const Frame& frame);
void draw_open_reference_dialog(const Frame& frame);
void draw_open_tensors_dialog(const Frame& frame);
void draw_open_given_dialog(const Frame& frame);
void draw_save_dialog(const Frame& frame);

}  // namespace app::panels
