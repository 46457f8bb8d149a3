#pragma once

#include <optional>
#include <string>

#include "app/state/command.hpp"
#include "app/state/key_press.hpp"
#include "app/state/situation.hpp"

namespace app {

/// Turns a key into what the table of actions says that it asks for.
///
/// Nothing happens while a dialog is open; call it only when no text is being typed (io.WantTextInput).
void handle_key(const KeyPress& press, const Situation& situation, Commands& commands);

/// The text that Ctrl+C copies: the edit cursor's number, else the pinned, else the hovered cell's, in full;
/// or nothing.
std::optional<std::string> copied_text(const Situation& situation);

}  // namespace app
