#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

// What stands inside the dialogs that look for a place on the disk.
void draw_open_dialog(const Frame& frame);
void draw_open_reference_dialog(const Frame& frame);
void draw_open_tensors_dialog(const Frame& frame);
void draw_open_given_dialog(const Frame& frame);
void draw_save_dialog(const Frame& frame);

/// What stands inside the dialog that exports: what, in which form, where to, and what will be written; files
/// that are there are written over only when that was answered.
void draw_export_dialog(const Frame& frame);

inline void close_dialog(const Frame& frame) {
  frame.commands.add(ShowDialog{Dialog::none});
}

}  // namespace app::panels
