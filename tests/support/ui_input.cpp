#include "tests/support/ui_input.hpp"

#include <cmath>
#include <utility>

#include "app/theme/imgui_compat.hpp"
#include "tests/support/imgui_input.hpp"

namespace support {
namespace {

using app::Key;
constexpr float pause = 0.5f;  // seconds between gestures, so that two clicks are never a double click
constexpr int drag_steps = 10;

constexpr std::pair<Key, ImGuiKey> known_keys[] = {{Key::a, ImGuiKey_A},
                                                   {Key::c, ImGuiKey_C},
                                                   {Key::v, ImGuiKey_V},
                                                   {Key::x, ImGuiKey_X},
                                                   {Key::y, ImGuiKey_Y},
                                                   {Key::z, ImGuiKey_Z},
                                                   {Key::escape, ImGuiKey_Escape},
                                                   {Key::enter, ImGuiKey_Enter},
                                                   {Key::tab, ImGuiKey_Tab},
                                                   {Key::delete_, ImGuiKey_Delete},
                                                   {Key::backspace, ImGuiKey_Backspace},
                                                   {Key::left, ImGuiKey_LeftArrow},
                                                   {Key::right, ImGuiKey_RightArrow},
                                                   {Key::up, ImGuiKey_UpArrow},
                                                   {Key::down, ImGuiKey_DownArrow},
                                                   {Key::home, ImGuiKey_Home},
                                                   {Key::end, ImGuiKey_End},
                                                   {Key::page_up, ImGuiKey_PageUp},
                                                   {Key::page_down, ImGuiKey_PageDown},
                                                   {Key::space, ImGuiKey_Space}};

void put_key(ImGuiIO& io, Key key, bool down) {
  for (const auto& [ours, theirs] : known_keys)
    if (ours == key) support::put_key(io, theirs, down);
}

InputFrame at(ImVec2 mouse, Modifiers m = {}, float seconds = 1.0f / 60) {
  InputFrame f;
  f.mouse = mouse, f.ctrl = m.ctrl, f.shift = m.shift, f.alt = m.alt, f.seconds = seconds;
  return f;
}

InputFrame with_left(InputFrame f, bool down) {
  f.left = down;
  return f;
}

}  // namespace

Gesture move_to(ImVec2 pos) {
  return {at(pos, {}, pause), at(pos)};
}

Gesture click(ImVec2 pos, Modifiers m) {
  return {at(pos, m, pause), at(pos, m), with_left(at(pos, m), true), with_left(at(pos, m), false),
          at(pos),           at(pos)};
}

Gesture right_click(ImVec2 pos) {
  InputFrame down = at(pos), up = at(pos);
  down.right = true, up.right = false;
  return {at(pos, {}, pause), down, up, at(pos), at(pos)};
}

Gesture double_click(ImVec2 pos) {
  Gesture g = {at(pos, {}, pause), at(pos)};
  for (int i = 0; i < 2; ++i) g.push_back(with_left(at(pos), true)), g.push_back(with_left(at(pos), false));
  for (int i = 0; i < 4; ++i) g.push_back(at(pos));
  return g;
}

Gesture drag(ImVec2 from, ImVec2 by, Modifiers m) {
  from = {std::floor(from.x), std::floor(from.y)};  // as ImGui does
  Gesture g = {at(from, m, pause), at(from, m), with_left(at(from, m), true)};
  for (int i = 1; i <= drag_steps; ++i) {
    const float share = static_cast<float>(i) / drag_steps;
    g.push_back(at({std::round(from.x + by.x * share), std::round(from.y + by.y * share)}, m));
  }
  const ImVec2 to(std::round(from.x + by.x), std::round(from.y + by.y));
  g.push_back(with_left(at(to, m), false)), g.push_back(at(to)), g.push_back(at(to));
  return g;
}

Gesture turn_wheel(ImVec2 pos, float steps) {
  InputFrame turn = at(pos);
  turn.wheel = steps;
  return {at(pos, {}, pause), at(pos), turn, at(pos), at(pos)};
}

Gesture type(const std::string& text) {
  InputFrame f;
  f.text = text;
  return {f, {}, {}, {}};
}

Gesture press(app::KeyPress key) {
  InputFrame down, up;
  down.key = key, down.ctrl = key.ctrl, down.shift = key.shift, down.alt = key.alt;
  up.released = key.key;
  return {down, up, {}, {}};
}

void put(const InputFrame& input, ImGuiIO& io) {
  io.DeltaTime = input.seconds;
  if (input.mouse) support::put_mouse(io, *input.mouse);
  if (input.left) support::put_button(io, 0, *input.left);
  if (input.right) support::put_button(io, 1, *input.right);
  if (input.wheel != 0) support::put_wheel(io, 0, input.wheel);
  support::put_modifiers(io, input.ctrl, input.shift, input.alt);
  if (input.key) put_key(io, input.key->key, true);
  if (input.released) put_key(io, *input.released, false);
  if (!input.text.empty()) support::put_text(io, input.text.c_str());
}

}  // namespace support
