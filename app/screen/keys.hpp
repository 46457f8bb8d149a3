#pragma once

#include <optional>

#include "app/session/key_press.hpp"

namespace app::platform {

/// Returns the n-th key after the first of its kind: letters, digits, function keys.
constexpr Key nth_key(Key first, unsigned n) {
  return static_cast<Key>(static_cast<unsigned>(first) + n);
}

/// Returns the key of a character, letters in either case; nullopt for characters without a command.
std::optional<Key> key_of_character(unsigned codepoint);

}  // namespace app::platform
