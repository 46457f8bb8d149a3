#include "app/theme/imgui_compat.hpp"

// To extend a window to its cursor, to focus an item of another window, and to see whether windows are
// measured.
#include <imgui_internal.h>

#include <algorithm>

namespace app::platform {

void move_to(ImVec2 at) {
  ImGui::SetCursorScreenPos(at);
#if IMGUI_VERSION_NUM >= 18900
  ImVec2& reached = ImGui::GetCurrentWindow()->DC.CursorMaxPos;
  reached = {std::max(reached.x, at.x), std::max(reached.y, at.y)};
#endif
}

bool is_settled() {
  const ImGuiContext& context = *ImGui::GetCurrentContext();
#if IMGUI_VERSION_NUM >= 18700
  if (!context.InputEventsQueue.empty()) return false;
#endif
  return std::none_of(context.Windows.begin(), context.Windows.end(), [](const ImGuiWindow* window) {
    return window->Active && (window->HiddenFramesCannotSkipItems > 0 || window->AutoFitFramesX > 0 ||
                              window->AutoFitFramesY > 0);
  });
}

void focus_next_item() {
#if IMGUI_VERSION_NUM == 19010  // this release searches only the focused window
  ImGuiContext& context = *ImGui::GetCurrentContext();
  context.NavFocusScopeId = context.CurrentFocusScopeId;
#endif
  ImGui::SetKeyboardFocusHere();
}

}  // namespace app::platform
