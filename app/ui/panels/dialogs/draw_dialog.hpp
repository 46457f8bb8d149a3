#pragma once

#include <optional>
#include <vector>

#include "app/ui/frame.hpp"
#include "core/base/draw_op.hpp"

namespace app::panels {

/// What stands inside Dialog::draw_model. Landmarks "draw/…".
void draw_draw_dialog(const Frame& frame);

/// Width of the dialogs that draw, and of their column of labels, in pixels.
float draw_dialog_width(const Frame& frame);
float draw_dialog_labels(const Frame& frame);

/// Writes the label of a dialog's row and puts the cursor at the column of controls.
void dialog_label(const Frame& frame, const char* words);

/// What was typed into drawn_before_row(): the text, the ops that it names and why it cannot be used.
struct TypedBefore {
  RngPrefix shown;
  std::vector<core::random::DrawOp> ops;  ///< empty when there is an error
};

/// The row "sampled before", a field of ops in the words of the command line over what is wrong with them or
/// a hint; marked as name and name + "/error". A new text when one was handed in.
std::optional<TypedBefore> drawn_before_row(const Frame& frame, const std::string& name,
                                            const RngPrefix& before);

/// The buttons that close a dialog: "dialog/confirm", greyed unless enabled, and "dialog/cancel". True when
/// it was confirmed, by Enter too.
bool dialog_buttons(const Frame& frame, const char* words, bool enabled);

}  // namespace app::panels
