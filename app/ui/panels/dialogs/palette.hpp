#pragma once

#include <string>

#include "app/ui/actions/finding.hpp"
#include "app/ui/frame.hpp"

namespace app::panels {

/// What was done to a search field in this frame.
struct Searched {
  std::string text;
  int moved = 0;  ///< lines down, by the arrow keys
};

/// A field for letters to be found, which takes the keyboard whenever nothing else has it; what stands in it
/// is Forms::search. Marked under that name.
Searched search_field(const Frame& frame, const char* name, const char* hint, float width);

inline constexpr float palette_pitch = 27;  ///< of the lines, at scale 1

/// One line of the palette: whether it is on, its name with the matched letters lit, where it is in the menus
/// or why it cannot be done now, and its key.
void draw_palette_line(const Frame& frame, const Situation& situation, const FoundAction& found, ImVec2 min,
                       ImVec2 max, bool chosen);

/// The palette, when View::dialog asks for it: a field, and below it the actions that have its letters, best
/// first.
///
/// Up, Down, Page up and Page down choose, Enter or a click does, Esc or a click elsewhere closes. Landmarks
/// "palette/field", "palette/line/0", … of the lines in sight, "palette/<id>".
void draw_action_palette(const Frame& frame);

}  // namespace app::panels
