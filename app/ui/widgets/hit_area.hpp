#pragma once

#include <imgui.h>

#include <algorithm>

namespace app::widgets {

/// An invisible item that takes the mouse and the keyboard's focus; true when it was pressed.
///
/// Without room it is one pixel large: Dear ImGui stops the program at an item of no size.
inline bool hit_area(const char* name, ImVec2 size) {
  return ImGui::InvisibleButton(name, {std::max(1.0f, size.x), std::max(1.0f, size.y)});
}

}  // namespace app::widgets
