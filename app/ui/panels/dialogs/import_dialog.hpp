#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

/// The dialog that makes a model of a file of tensors: a layer of a checkpoint, projections named by hand,
/// stages that are given, or embeddings; and the list of all tensors with their shapes, types and, once
/// clicked, ranges.
///
/// Landmarks "import/as", "import/first_line", "import/layer", "import/heads", "import/embeddings",
/// "import/file", "import/reservations", "import/tensor/<index>", "dialog/confirm" and "dialog/cancel".
void draw_import_dialog(const Frame& frame);

/// What is being read and how far it is, with a button to stop it; nothing when it takes no time. Landmark
/// "reading/cancel".
void draw_reading(const Frame& frame);
/// The same as a line of a dialog that is open meanwhile.
void draw_reading_line(const Frame& frame);

}  // namespace app::panels
