#pragma once

#include <string_view>

#include "app/ui/frame.hpp"
#include "app/ui/widgets/fields.hpp"

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

/// The foot of a dialog that does something: "dialog/confirm", greyed unless enabled, "dialog/cancel", which
/// closes it, and perhaps another one. The name of the one that was pressed, or "".
std::string_view confirm_buttons(const Frame& frame, float width, const char* words, bool enabled,
                                 const widgets::DialogButton& another = {});

}  // namespace app::panels
