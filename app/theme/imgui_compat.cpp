#include "app/theme/imgui_compat.hpp"

#if IMGUI_VERSION_NUM >= 18900
#include <imgui_internal.h>  // nothing else makes a window reach to the cursor without an item

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

}  // namespace app::platform
