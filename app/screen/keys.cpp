#include "app/screen/keys.hpp"

#include <utility>

namespace app::platform {

std::optional<Key> key_of_character(unsigned c) {
  constexpr std::pair<char, Key> signs[]{
      {'[', Key::bracket_left}, {']', Key::bracket_right}, {'/', Key::slash}, {'?', Key::question},
      {'+', Key::plus},         {'-', Key::minus},         {' ', Key::space}};
  if (c >= 'a' && c <= 'z') return nth_key(Key::a, c - 'a');
  if (c >= 'A' && c <= 'Z') return nth_key(Key::a, c - 'A');
  if (c >= '0' && c <= '9') return nth_key(Key::digit_0, c - '0');
  for (const auto& [sign, key] : signs)
    if (static_cast<unsigned>(sign) == c) return key;
  return std::nullopt;
}

}  // namespace app::platform
