#include "app/theme/imgui_compat.hpp"

#if IMGUI_VERSION_NUM >= 18900
#include <imgui_internal.h>  // to extend a window to its cursor, and to focus an item of another window

#include <algorithm>
#endif

namespace app::platform {

void move_to(ImVec2 at) {
  ImGui::SetCursorScreenPos(at);
#if IMGUI_VERSION_NUM >= 18900
  ImVec2& reached = ImGui::GetCurrentWindow()->DC.CursorMaxPos;
  reached = {std::max(reached.x, at.x), std::max(reached.y, at.y)};
#endif
}

void focus_next_item() {
#if IMGUI_VERSION_NUM == 19010  // this release searches only the focused window
  ImGuiContext& context = *ImGui::GetCurrentContext();
  context.NavFocusScopeId = context.CurrentFocusScopeId;
#endif
  ImGui::SetKeyboardFocusHere();
}

}  // namespace app::platform
