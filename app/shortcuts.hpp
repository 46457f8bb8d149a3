#pragma once

#include <optional>
#include <span>

#include "app/command.hpp"
#include "app/frame.hpp"
#include "app/key_press.hpp"

namespace app {

/// What a key may look at: what is shown, and what edits change, which may be of another shape.
struct Situation {
  const core::attention::Model& model;  ///< that the trace is of
  const core::attention::Trace& trace;  ///< of the shown sequence
  const View& view;                     ///< as far as that model has what is looked at
  const Document& document;
  Newest newest;
};

/// That of a frame which is not of_newest().
Situation situation_of(const Frame& shown);

/// One row of the table of keys: it handles them and fills the sheet.
struct Shortcut {
  KeyPress press;
  const char* keys;  ///< in the sheet: "Ctrl+Z"; nullptr: a second key of the row above
  const char* words;
  /// What the key asks for, or nothing; nullptr when the matrix editor or the view handles it.
  std::optional<Command> (*command)(const Situation&);
};

std::span<const Shortcut> shortcuts();

/// Turns a key into its command.
///
/// Nothing happens while a dialog is open; call it only when no text is being typed (io.WantTextInput).
/// Digits belong to the matrix editor as long as its cursor is there.
void handle_key(const KeyPress& press, const Situation& situation, Commands& commands);

/// The text that Ctrl+C copies: the edit cursor's number, else the pinned, else the hovered cell's, in full;
/// or nothing.
std::optional<std::string> copied_text(const Situation& situation);

}  // namespace app
