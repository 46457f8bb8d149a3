#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

/// The stages that can be given, each with the tensor that holds it, and the layer.
///
/// Landmarks "import/stage/weights" and so on, "import/stage_layer", "import/batch".
void draw_import_stages(const Frame& frame, const OpenedTensors& tensors, float width);

/// What the form asks for, or nothing while no stage is named.
std::optional<core::importing::Choices> stages_by_hand(const ImportForm& form, const OpenedTensors& tensors);

}  // namespace app::panels
