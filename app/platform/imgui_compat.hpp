#pragma once

#include <imgui.h>

namespace app::platform {

// What differs between the releases 1.86 and 1.92 of Dear ImGui.

inline void push_font(ImFont* font) {
#if IMGUI_VERSION_NUM >= 19200
  ImGui::PushFont(font, font->LegacySize);
#else
  ImGui::PushFont(font);
#endif
}

inline float font_size(const ImFont* font) {
#if IMGUI_VERSION_NUM >= 19200
  return font->LegacySize;
#else
  return font->FontSize;
#endif
}

/// Whether a key went down in this frame, or repeats while it is held.
inline bool key_pressed(ImGuiKey key, bool repeat = true) {
#if IMGUI_VERSION_NUM >= 18700
  return ImGui::IsKeyPressed(key, repeat);
#else
  const int index = ImGui::GetKeyIndex(key);
  return index >= 0 && ImGui::IsKeyPressed(index, repeat);
#endif
}

inline void outline(ImDrawList* list, ImVec2 min, ImVec2 max, ImU32 colour, float thickness, float rounding = 0) {
#if IMGUI_VERSION_NUM >= 19280
  list->AddRect(min, max, colour, rounding, thickness);
#else
  list->AddRect(min, max, colour, rounding, 0, thickness);
#endif
}

}  // namespace app::platform
