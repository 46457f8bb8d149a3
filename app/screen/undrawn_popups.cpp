#include "app/screen/undrawn_popups.hpp"

#include <imgui.h>
#if IMGUI_VERSION_NUM < 18700
#include <imgui_internal.h>  // of one release, which no longer changes: nothing else tells what was drawn
#endif

namespace app::platform {

#if IMGUI_VERSION_NUM < 18700
void close_undrawn_popups_on_escape() {
  const ImGuiIO& io = ImGui::GetIO();
  const int escape = io.KeyMap[ImGuiKey_Escape];
  if (escape < 0 || !io.KeysDown[escape]) return;
  auto& popups = ImGui::GetCurrentContext()->OpenPopupStack;
  while (!popups.empty() && !popups.back().Window) popups.pop_back();
}
#else
void close_undrawn_popups_on_escape() {}
#endif

}  // namespace app::platform
