#pragma once

#include <imgui.h>

#include <optional>
#include <string>
#include <vector>

#include "app/session/key_press.hpp"

namespace support {

/// What a person's hands do in one frame; what is not named stays as it is.
struct InputFrame {
  std::optional<ImVec2> mouse;
  std::optional<bool> left, right;  ///< buttons
  float wheel = 0;
  bool ctrl = false, shift = false, alt = false;
  std::string text;                  ///< typed letters, UTF-8
  std::optional<app::KeyPress> key;  ///< goes down in this frame
  std::optional<app::Key> released;
  float seconds = 1.0f / 60;  ///< since the frame before: simulated, so that no test depends on a clock
};

/// The frames of a gesture. They know neither a window nor a panel.
using Gesture = std::vector<InputFrame>;

struct Modifiers {
  bool ctrl = false, shift = false, alt = false;
};

Gesture move_to(ImVec2 at);
Gesture click(ImVec2 at, Modifiers modifiers = {});
Gesture right_click(ImVec2 at);
Gesture double_click(ImVec2 at);
/// Ten steps from a point, so far.
Gesture drag(ImVec2 from, ImVec2 by, Modifiers modifiers = {});
Gesture turn_wheel(ImVec2 at, float steps);
Gesture type(const std::string& text);
Gesture press(app::KeyPress key);

/// Gives a frame's input to ImGui, before ImGui::NewFrame; KeyPress is for the program, its ImGui key goes
/// along.
void put(const InputFrame& input, ImGuiIO& io);

}  // namespace support
