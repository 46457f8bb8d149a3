#pragma once

#include <string_view>

#include "app/ui/frame.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/fields.hpp"

namespace app::panels {

/// Draws the open dialog, Forms::dialog, over everything else. Enter confirms, Esc closes. Landmarks
/// "dialog/…" and "browser/…".
void draw_dialogs(const Frame& frame);

// Contents of the dialogs with a file browser.
void draw_open_dialog(const Frame& frame);
void draw_open_reference_dialog(const Frame& frame);
void draw_open_tensors_dialog(const Frame& frame);
void draw_open_override_dialog(const Frame& frame);
void draw_open_texts_dialog(const Frame& frame);
void draw_save_dialog(const Frame& frame);

/// Draws the contents of the export dialog: source, form, destination, and the files to be written; existing
/// files are replaced only after a question.
void draw_export_dialog(const Frame& frame);
void draw_export_run_dialog(const Frame& frame);
/// Draws the dialog that writes the selected map of patches.
void draw_export_map_dialog(const Frame& frame);

void close_dialog(const Frame& frame);

/// Returns a width given at scale 1 in pixels, or less if the window has no room.
float dialog_width(const Frame& frame, float wanted);

/// Draws the buttons of a dialog: "dialog/confirm", grayed unless enabled, "dialog/cancel", which closes it,
/// and optionally another one. Returns the name of the one that was pressed, or "".
std::string_view confirm_buttons(const Frame& frame, float width, const char* words, bool enabled,
                                 const DialogButton& another = {});

/// Draws the dialog that makes a model from a file of tensors: a layer of a checkpoint, projections selected
/// by hand, given stages, or embeddings; and the list of all tensors with their shapes, types and, once
/// clicked, ranges.
///
/// Landmarks "import/as", "import/first_line", "import/first_column", "import/layer", "import/heads",
/// "import/causal", "import/scale", "import/rope", "import/window", "import/kv_heads", "import/embeddings",
/// "import/file", "import/reservations", "import/tensor/<index>", "dialog/confirm" and "dialog/cancel".
void draw_import_dialog(const Frame& frame);

/// Draws the file being read or written and its progress, with a button to stop it; nothing when it takes no
/// time. Landmark "reading/cancel".
void draw_file_progress(const Frame& frame);

/// Draws the same as a line of the open dialog.
void draw_file_progress_line(const Frame& frame);

/// Draws the contents of Dialog::draw_model. Landmarks "draw/…".
void draw_initialize_dialog(const Frame& frame);

/// Opens the dialog that fills a matrix.
void open_fill_dialog(const Frame& frame, core::editing::MatrixRef place);

/// Draws the contents of Dialog::fill. Landmarks "fill/…".
void draw_fill_dialog(const Frame& frame);

/// Draws the dialog that overrides Forms::overridden_stage with its present, pasted or a file's numbers, or
/// removes the override. Landmarks "give/…".
void draw_override_dialog(const Frame& frame);

/// Draws the contents of Dialog::sentence: a text field, its tokens, and the seed of their embeddings.
void draw_sentence_dialog(const Frame& frame);

/// Draws all terms of the glossary with their meanings, in a scrolling list.
void draw_glossary_dialog(const Frame& frame);

/// Draws the contents of Dialog::keys: every key of the table of actions. Landmarks "dialog/keys/0", ….
void draw_key_sheet(const Frame& frame);

/// Draws the palette while Forms::dialog is Dialog::palette: a field, and below it the actions that match,
/// best first.
///
/// Up, Down, Page up and Page down select, Enter or a click performs, Esc or a click elsewhere closes.
/// Landmarks "palette/field", "palette/line/0", … of the visible lines, "palette/<id>".
void draw_action_palette(const Frame& frame);

}  // namespace app::panels
