#pragma once

#include <optional>

namespace app::platform {

/// Keys that commands can be bound to; letters and signs are those that the keyboard's layout says, not places on it.
enum class Key {
  a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z,
  digit_0, digit_1, digit_2, digit_3, digit_4, digit_5, digit_6, digit_7, digit_8, digit_9,
  f1, escape, enter, tab, backspace, remove, home, end, page_up, page_down,
  left, right, up, down,
  left_bracket, right_bracket, slash, question, plus, minus, equals, comma, period, space
};

/// One key that went down, or that repeats.
struct KeyPress {
  Key key = Key::escape;
  bool ctrl = false, shift = false, alt = false;
  friend bool operator==(const KeyPress&, const KeyPress&) = default;
};

/// The key of a character, letters in either case; nothing for characters that no command is bound to.
std::optional<Key> key_of_character(unsigned codepoint);

/// The key of a GLFW key code that is no character: arrows, F1, Escape …
std::optional<Key> key_of_code(int code);

}  // namespace app::platform
