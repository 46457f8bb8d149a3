#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

/// Rows in which each projection is named by hand: its tensor, which way it is kept, which part of it is
/// meant, its bias.
///
/// Landmarks "import/query/weight", "import/query/turned", "import/query/part", "import/query/bias" and so
/// on.
void draw_import_mapping(const Frame& frame, const OpenedTensors& tensors, float width);

/// The mapping that the form holds, when all that it needs is named.
std::optional<core::formats::checkpoints::Mapping> mapping_by_hand(const ImportForm& form);

}  // namespace app::panels
