#pragma once

#include <optional>

#include "app/session/key_press.hpp"

namespace app::platform {

/// The key of a character, letters in either case; nothing for characters that no command is bound to.
std::optional<Key> key_of_character(unsigned codepoint);

/// The key of a GLFW key code that is no character: arrows, F1, Escape …
std::optional<Key> key_of_code(int code);

}  // namespace app::platform
