#pragma once

#include "app/ui/actions/action_finding.hpp"
#include "app/ui/frame.hpp"

namespace app::panels {

inline constexpr float palette_pitch = 27;  ///< of the lines, at scale 1

/// One line of the palette: whether it is on, its name with the matched letters lit, where it is in the menus
/// or why it cannot be done now, and its key.
void draw_palette_line(const Frame& frame, const Situation& situation, const FoundAction& found, ImVec2 min,
                       ImVec2 max, bool chosen);

}  // namespace app::panels
