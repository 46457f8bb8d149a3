#pragma once

#include "app/ui/widgets/pen.hpp"

namespace app::panels {

/// A field that types a number over the pinned cell, and a link that takes it back. Marked "inspector/typed",
/// "inspector/computed".
void draw_typed(widgets::Pen& pen, const CellRef& cell);

}  // namespace app::panels
