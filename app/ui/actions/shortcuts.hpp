#pragma once

#include "app/session/command.hpp"
#include "app/session/key_press.hpp"
#include "app/session/situation.hpp"

namespace app {

/// Turns a key into what the table of actions says that it asks for.
///
/// Nothing happens while a dialog is open; call it only when no text is being typed (io.WantTextInput).
void handle_key(const KeyPress& press, const Situation& situation, Commands& commands);

}  // namespace app
