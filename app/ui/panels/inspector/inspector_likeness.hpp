#pragma once

#include <cstddef>

#include "app/ui/widgets/pen.hpp"

namespace app::panels {

/// How alike the heads are, as a matrix in the order they are sorted by, with the most and the least alike of
/// one head.
void draw_likeness(widgets::Pen& pen, std::size_t head);

}  // namespace app::panels
