#pragma once

#include <string_view>

#include "app/ui/frame.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/fields.hpp"

namespace app::panels {

/// The dialog that View::dialog names, over everything else. Enter confirms, Esc closes. Landmarks "dialog/…"
/// and "browser/…".
void draw_dialogs(const Frame& frame);

// What stands inside the dialogs that look for a place on the disk.
void draw_open_dialog(const Frame& frame);
void draw_open_reference_dialog(const Frame& frame);
void draw_open_tensors_dialog(const Frame& frame);
void draw_open_given_dialog(const Frame& frame);
void draw_save_dialog(const Frame& frame);

/// What stands inside the dialog that exports: what, in which form, where to, and what will be written; files
/// that are there are written over only when that was answered.
void draw_export_dialog(const Frame& frame);

void close_dialog(const Frame& frame);

/// As wide as that at scale 1, or what the window has room for.
float dialog_width(const Frame& frame, float wanted);

/// The foot of a dialog that does something: "dialog/confirm", greyed unless enabled, "dialog/cancel", which
/// closes it, and perhaps another one. The name of the one that was pressed, or "".
std::string_view confirm_buttons(const Frame& frame, float width, const char* words, bool enabled,
                                 const DialogButton& another = {});

/// The dialog that makes a model of a file of tensors: a layer of a checkpoint, projections named by hand,
/// stages that are given, or embeddings; and the list of all tensors with their shapes, types and, once
/// clicked, ranges.
///
/// Landmarks "import/as", "import/first_line", "import/layer", "import/heads", "import/causal",
/// "import/scale", "import/rope", "import/window", "import/kv_heads", "import/embeddings", "import/file",
/// "import/reservations", "import/tensor/<index>", "dialog/confirm" and "dialog/cancel".
void draw_import_dialog(const Frame& frame);

/// What is being read and how far it is, with a button to stop it; nothing when it takes no time. Landmark
/// "reading/cancel".
void draw_reading(const Frame& frame);

/// The same as a line of a dialog that is open meanwhile.
void draw_reading_line(const Frame& frame);

/// What stands inside Dialog::draw_model. Landmarks "draw/…".
void draw_draw_dialog(const Frame& frame);

/// Asks what a matrix is to be filled with.
void open_fill_dialog(const Frame& frame, core::editing::MatrixPlace place);

/// What stands inside Dialog::fill. Landmarks "fill/…".
void draw_fill_dialog(const Frame& frame);

/// Gives a stage its numbers, kept, pasted or from a file, or computes it again; View::given_stage. Landmarks
/// "give/…".
void draw_give_dialog(const Frame& frame);

/// A sentence to be typed, what it is taken apart into, and the seed of its embeddings.
void draw_sentence_dialog(const Frame& frame);

/// All terms with their meanings, in a scrolling list.
void draw_glossary_dialog(const Frame& frame);

/// What stands inside Dialog::keys: every key, out of the table of actions. Landmarks "dialog/keys/0", ….
void draw_key_sheet(const Frame& frame);

/// The palette, when View::dialog asks for it: a field, and below it the actions that have its letters, best
/// first.
///
/// Up, Down, Page up and Page down choose, Enter or a click does, Esc or a click elsewhere closes. Landmarks
/// "palette/field", "palette/line/0", … of the lines in sight, "palette/<id>".
void draw_action_palette(const Frame& frame);

}  // namespace app::panels
