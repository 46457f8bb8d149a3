#pragma once

#include "app/frame.hpp"

namespace app::panels {

/// The dialog that makes a model of a file of tensors: layer and heads, or each projection by hand, what goes
/// in, and the list of all tensors with their shapes, types and, once clicked, ranges.
///
/// Landmarks "import/layer", "import/heads", "import/by_hand", "import/embeddings", "import/file",
/// "import/tensor/<index>", "dialog/confirm" and "dialog/cancel".
void draw_import_dialog(const Frame& frame);

/// What is being read and how far it is, with a button to stop it; nothing when it takes no time. Landmark
/// "reading/cancel".
void draw_reading(const Frame& frame);

}  // namespace app::panels
