#pragma once

#include <imgui.h>

#include <optional>

#include "app/ui/frame.hpp"

namespace app::panels {

/// The cells of a stage's map on the screen, of which a part may be shown.
struct ShownMap {
  Landmarks::Rect rect;
  CellWindow part;
  /// Where a column and a row begin, in pixels; beyond the map for those that are not shown.
  float x(double column) const;
  float y(double row) const;
};

/// The map of a stage that is presented, made of, alone or in the strip, whichever is on the screen.
std::optional<ShownMap> shown_map(const Frame& frame, const core::attention::StageInfo& stage);

}  // namespace app::panels
