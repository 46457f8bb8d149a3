#pragma once

#include <cstddef>
#include <vector>

#include "app/ui/frame.hpp"

namespace app::panels {

/// The heads whose lines are shown in the token view.
std::vector<std::size_t> heads_with_lines(const Frame& frame);

/// A switch for every head, and for all of them; scrolls when they are very many.
void draw_token_chips(const Frame& frame, float width);

}  // namespace app::panels
