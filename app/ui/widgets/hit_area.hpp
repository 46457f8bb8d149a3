#pragma once

#include <imgui.h>

#include <algorithm>

#include "app/theme/imgui_compat.hpp"

namespace app::widgets {

/// Where a window remembers the frame in which one of its items took Enter.
inline constexpr ImGuiID took_enter = 0x656e7472;

/// Whether Enter went down, and not in a field.
inline bool enter_pressed() {
  return !ImGui::GetIO().WantTextInput && (platform::key_pressed(ImGuiKey_Enter, false) ||
                                           platform::key_pressed(platform::keypad_enter, false));
}

/// Whether Enter went down on the item before, where the keyboard stands; it presses like the space bar in
/// every release of Dear ImGui.
inline bool entered_item() {
  if (!ImGui::IsItemFocused() || !ImGui::GetIO().NavVisible || !enter_pressed()) return false;
  ImGui::GetStateStorage()->SetInt(took_enter, ImGui::GetFrameCount());
  return true;
}

/// Whether Enter went down and no item of the window above took it: what a dialog is for is done.
inline bool enter_confirms() {
  return enter_pressed() && ImGui::GetStateStorage()->GetInt(took_enter, -1) != ImGui::GetFrameCount();
}

/// An invisible item that takes the mouse and the keyboard's focus; true when it was pressed.
///
/// Without room it is one pixel large: Dear ImGui stops the program at an item of no size.
inline bool hit_area(const char* name, ImVec2 size) {
  const bool pressed = ImGui::InvisibleButton(name, {std::max(1.0f, size.x), std::max(1.0f, size.y)});
  return entered_item() || pressed;
}

}  // namespace app::widgets
