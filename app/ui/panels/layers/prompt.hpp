#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "app/ui/frame.hpp"

namespace app::panels {

/// A text as a field without wrapping shows it in lines: each line that is too wide ends at a blank, which is
/// then "\n", and what ends a line of the text is "\r\n". plain_of() takes it back.
///
/// fits says whether a line has room; a word that has none stands as it is.
std::string wrapped(const std::string& plain, const std::function<bool(const std::string& line)>& fits);

/// The text of wrapped lines, or of a beginning of them.
std::string plain_of(const std::string& lines);

/// Where a place of the text stands in its wrapped lines, in bytes.
std::size_t place_in_lines(const std::string& lines, std::size_t place_in_text);

/// Draws the prompt, which is read as it is typed, its tokens, and the controls of generation.
void draw_prompt(const Frame& frame, float width);

}  // namespace app::panels
