#pragma once

#include <span>
#include <string>

#include "app/session/key_press.hpp"

namespace app {

/// A key as people write it: "Ctrl+Shift+S", "F1", "+".
std::string written(const KeyPress& press);

/// Several keys as one: "Ctrl+Y, Ctrl+Shift+Z", "1 … 9" for digits in a row, "Shift+↑ ↓" where all are held
/// with the same.
std::string written(std::span<const KeyPress> presses);

}  // namespace app
