#pragma once

#include <imgui.h>

#include <optional>
#include <string>
#include <vector>

#include "app/session/key_press.hpp"

namespace support {

/// User input of one frame; unset members keep their state.
struct InputFrame {
  std::optional<ImVec2> mouse;
  std::optional<bool> left, right;  ///< buttons
  float wheel = 0;
  bool ctrl = false, shift = false, alt = false;
  std::string text;                  ///< typed letters, UTF-8
  std::optional<app::KeyPress> key;  ///< pressed in this frame
  std::optional<app::Key> released;
  float seconds = 1.0f / 60;  ///< since the last frame; simulated, so that no test depends on a clock
};

/// Frames of a gesture, independent of windows and panels.
using Gesture = std::vector<InputFrame>;

struct Modifiers {
  bool ctrl = false, shift = false, alt = false;
};

Gesture move_to(ImVec2 at);
Gesture click(ImVec2 at, Modifiers modifiers = {});
Gesture right_click(ImVec2 at);
Gesture double_click(ImVec2 at);
/// Returns a drag from a point by an offset, in ten steps.
Gesture drag(ImVec2 from, ImVec2 by, Modifiers modifiers = {});
Gesture turn_wheel(ImVec2 at, float steps);
Gesture type(const std::string& text);
Gesture press(app::KeyPress key);

/// Passes a frame's input to ImGui before ImGui::NewFrame, with the ImGui key of its KeyPress.
void put(const InputFrame& input, ImGuiIO& io);

}  // namespace support
