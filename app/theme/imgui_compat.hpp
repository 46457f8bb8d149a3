#pragma once

#include <imgui.h>

#include <cstdint>

/// Differences between the releases 1.86 to 1.92 of Dear ImGui that concern this program.
namespace app::platform {

#if IMGUI_VERSION_NUM >= 18700
inline constexpr ImGuiKey keypad_enter = ImGuiKey_KeypadEnter;
#else
inline constexpr ImGuiKey keypad_enter = ImGuiKey_KeyPadEnter;
#endif

/// Whether glyphs are rasterized on first use, and not when their font is loaded.
inline constexpr bool rasterizes_on_demand = IMGUI_VERSION_NUM >= 19200;

/// Returns an OpenGL texture as ImGui's draw lists expect it.
inline ImTextureID texture_id(unsigned texture) {
  return (ImTextureID)(std::intptr_t)texture;
}

/// Returns the texture of a command, as a number that no other texture has.
inline std::uint64_t command_texture(const ImDrawCmd& command) {
#if IMGUI_VERSION_NUM >= 19200
  constexpr std::uint64_t of_imgui = std::uint64_t{1} << 63;  // the backend may not have created it yet
  const ImTextureRef& texture = command.TexRef;
  return texture._TexData ? of_imgui | static_cast<std::uint64_t>(texture._TexData->UniqueID)
                          : static_cast<std::uint64_t>(texture._TexID);
#else
  return static_cast<std::uint64_t>((std::intptr_t)command.GetTexID());
#endif
}

/// Flag of begin_child(): padding of a child window even without a border.
#if IMGUI_VERSION_NUM >= 19110
inline constexpr ImGuiWindowFlags padded = 1 << 30;
#else
inline constexpr ImGuiWindowFlags padded = ImGuiWindowFlags_AlwaysUseWindowPadding;
#endif

/// Calls ImGui::BeginChild with or without a border.
inline bool begin_child(const char* name, ImVec2 size, bool border = false, ImGuiWindowFlags flags = 0) {
#if IMGUI_VERSION_NUM >= 19110
  return ImGui::BeginChild(
      name, size,
      (border ? ImGuiChildFlags_Borders : ImGuiChildFlags_None) |
          (flags & padded ? ImGuiChildFlags_AlwaysUseWindowPadding : ImGuiChildFlags_None),
      flags & ~padded);
#else
  return ImGui::BeginChild(name, size, border, flags);
#endif
}

/// Returns the height at which a font was loaded, in pixels; from 1.92 on it can be drawn at any other.
inline float font_size(const ImFont* font) {
#if IMGUI_VERSION_NUM >= 19200
  return font->LegacySize;
#else
  return font->FontSize;
#endif
}

/// Returns the glyphs of a font at the height at which it was loaded, with their metrics.
inline auto* glyphs_of(ImFont* font) {
#if IMGUI_VERSION_NUM >= 19200
  return font->GetFontBaked(font->LegacySize);
#else
  return font;
#endif
}

/// Returns whether a font was loaded with a glyph of the character.
inline bool has_glyph(ImFont* font, char32_t character) {
  return character <= IM_UNICODE_CODEPOINT_MAX &&
         glyphs_of(font)->FindGlyphNoFallback(static_cast<ImWchar>(character)) != nullptr;
}

/// Returns the distance from the top of a line of a font to its baseline, in pixels.
inline float ascent(ImFont* font) {
  return glyphs_of(font)->Ascent;
}

/// Selects a font, at the height at which it was loaded, until ImGui::PopFont.
inline void push_font(ImFont* font) {
#if IMGUI_VERSION_NUM >= 19200
  ImGui::PushFont(font, font->LegacySize);
#else
  ImGui::PushFont(font);
#endif
}

/// Makes the first loaded font the default where none is pushed, also after others were loaded.
inline void use_first_font() {
#if IMGUI_VERSION_NUM >= 19200
  ImGui::GetStyle().FontSizeBase = font_size(ImGui::GetIO().Fonts->Fonts[0]);
#endif
}

/// Draws text without skipping the glyphs outside the visible area.
inline void draw_unclipped_text(ImDrawList* list, ImFont* font, float size, ImVec2 at, ImU32 color,
                                const char* begin, const char* end) {
  constexpr float far = 1e6f;
  font->RenderText(list, size, at, color, ImVec4(-far, -far, far, far), begin, end);
}

/// Draws an outline of that thickness.
inline void rect(ImDrawList* list, ImVec2 min, ImVec2 max, ImU32 color, float thickness = 1,
                 float rounding = 0) {
#if IMGUI_VERSION_NUM >= 19280
  list->AddRect(min, max, color, rounding, thickness);
#else
  list->AddRect(min, max, color, rounding, 0, thickness);
#endif
}

/// Moves the cursor and extends the window to it: releases from 1.92 on abort if the cursor was only moved.
void move_to(ImVec2 at);

/// Returns whether the frame just drawn is as Dear ImGui would draw it again: no input waits for a later
/// frame, and every window has been measured.
bool is_settled();

/// Gives the keyboard focus to the next item, from the next frame on.
void focus_next_item();

/// Returns whether a key that every release knows (arrows, Tab, Enter, Escape, Delete …) was pressed.
inline bool key_pressed(ImGuiKey key, bool repeat = true) {
#if IMGUI_VERSION_NUM >= 18700
  return ImGui::IsKeyPressed(key, repeat);
#else
  return ImGui::IsKeyPressed(ImGui::GetKeyIndex(key), repeat);
#endif
}

/// Returns whether such a key is held.
inline bool key_down(ImGuiKey key) {
#if IMGUI_VERSION_NUM >= 18700
  return ImGui::IsKeyDown(key);
#else
  return ImGui::IsKeyDown(ImGui::GetKeyIndex(key));
#endif
}

}  // namespace app::platform
