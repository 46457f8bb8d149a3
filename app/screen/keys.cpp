#include "app/screen/keys.hpp"

#define GLFW_INCLUDE_NONE
#include <GLFW/glfw3.h>

namespace app::platform {
namespace {

Key nth(Key first, unsigned n) {
  return static_cast<Key>(static_cast<unsigned>(first) + n);
}

}  // namespace

std::optional<Key> key_of_character(unsigned c) {
  if (c >= 'a' && c <= 'z') return nth(Key::a, c - 'a');
  if (c >= 'A' && c <= 'Z') return nth(Key::a, c - 'A');
  if (c >= '0' && c <= '9') return nth(Key::digit_0, c - '0');
  switch (c) {
    case '[':
      return Key::bracket_left;
    case ']':
      return Key::bracket_right;
    case '/':
      return Key::slash;
    case '?':
      return Key::question;
    case '+':
      return Key::plus;
    case '-':
      return Key::minus;
    case ' ':
      return Key::space;
    default:
      return std::nullopt;
  }
}

std::optional<Key> key_of_code(int code) {
  if (code >= GLFW_KEY_F1 && code <= GLFW_KEY_F12)
    return nth(Key::f1, static_cast<unsigned>(code - GLFW_KEY_F1));
  switch (code) {
    case GLFW_KEY_ESCAPE:
      return Key::escape;
    case GLFW_KEY_ENTER:
    case GLFW_KEY_KP_ENTER:
      return Key::enter;
    case GLFW_KEY_TAB:
      return Key::tab;
    case GLFW_KEY_BACKSPACE:
      return Key::backspace;
    case GLFW_KEY_DELETE:
      return Key::delete_;
    case GLFW_KEY_HOME:
      return Key::home;
    case GLFW_KEY_END:
      return Key::end;
    case GLFW_KEY_PAGE_UP:
      return Key::page_up;
    case GLFW_KEY_PAGE_DOWN:
      return Key::page_down;
    case GLFW_KEY_LEFT:
      return Key::left;
    case GLFW_KEY_RIGHT:
      return Key::right;
    case GLFW_KEY_UP:
      return Key::up;
    case GLFW_KEY_DOWN:
      return Key::down;
    default:
      return std::nullopt;
  }
}

}  // namespace app::platform
