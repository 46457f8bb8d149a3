#pragma once

#include <imgui.h>

#include <cstdint>

/// Scripted input for every release of Dear ImGui, passed before ImGui::NewFrame.
namespace support {

/// Maps keys for a context without a backend, which has none in old releases; call once before put_key.
inline void name_keys([[maybe_unused]] ImGuiIO& io) {
#if IMGUI_VERSION_NUM < 18700
  for (int key = 0; key < ImGuiKey_COUNT; ++key) io.KeyMap[key] = key;
#endif
}

inline void put_mouse(ImGuiIO& io, ImVec2 position) {
#if IMGUI_VERSION_NUM >= 18700
  io.AddMousePosEvent(position.x, position.y);
#else
  io.MousePos = position;
#endif
}

inline void put_button(ImGuiIO& io, int button, bool down) {
#if IMGUI_VERSION_NUM >= 18700
  io.AddMouseButtonEvent(button, down);
#else
  io.MouseDown[button] = down;
#endif
}

inline void put_wheel(ImGuiIO& io, float x, float y) {
#if IMGUI_VERSION_NUM >= 18700
  io.AddMouseWheelEvent(x, y);
#else
  io.MouseWheelH += x;
  io.MouseWheel += y;
#endif
}

inline void put_key(ImGuiIO& io, ImGuiKey key, bool down) {
#if IMGUI_VERSION_NUM >= 18700
  io.AddKeyEvent(key, down);
#else
  if (io.KeyMap[key] >= 0) io.KeysDown[io.KeyMap[key]] = down;
#endif
}

inline void put_modifiers(ImGuiIO& io, bool ctrl, bool shift, bool alt) {
#if IMGUI_VERSION_NUM >= 18900
  io.AddKeyEvent(ImGuiMod_Ctrl, ctrl);
  io.AddKeyEvent(ImGuiMod_Shift, shift);
  io.AddKeyEvent(ImGuiMod_Alt, alt);
#elif IMGUI_VERSION_NUM >= 18700
  io.AddKeyEvent(ImGuiKey_ModCtrl, ctrl);
  io.AddKeyEvent(ImGuiKey_ModShift, shift);
  io.AddKeyEvent(ImGuiKey_ModAlt, alt);
#else
  io.KeyCtrl = ctrl;
  io.KeyShift = shift;
  io.KeyAlt = alt;
#endif
}

inline void put_text(ImGuiIO& io, const char* utf8) {
  io.AddInputCharactersUTF8(utf8);
}

/// Returns the OpenGL name of a texture in a draw list.
inline unsigned texture_name(ImTextureID texture) {
  return static_cast<unsigned>((std::intptr_t)texture);
}

}  // namespace support
