#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

/// The step of the tour under way: an outline around what it points at, and a card beside that which says
/// what to do. Asks for the next step once it was done.
///
/// Marks "tour/card", "tour/next" and "tour/skip".
void draw_tour(const Frame& frame);

}  // namespace app::panels
