#pragma once

#include <imgui.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace app::widgets {

/// Which point of a text lies at the given position; "middle" centres figures and lower-case letters, not the
/// line box.
enum class Align { left_top, left_middle, right_middle, middle };

float text_width(ImFont* font, std::string_view text);

/// How much lower a text of a smaller font begins than one of a larger font on the same line.
float baseline_drop(ImFont* large, ImFont* small);

/// Draws text into the current window, at whole pixels.
void draw_text(ImFont* font, ImVec2 position, Align align, ImU32 color, std::string_view text);

/// Draws text turned by a quarter, to be read from below; it begins at the bottom and is centred on x.
void draw_text_turned(ImFont* font, ImVec2 bottom_middle, ImU32 color, std::string_view text);

/// The text, or as much of it as fits the room with … at its end; never less than one character.
std::string shortened(ImFont* font, const std::string& text, float room);

/// Draws "X·W_q + b_q" with the letter or the digits after each underscore small and lowered; returns the
/// width.
float draw_formula(ImFont* font, ImVec2 left_top, ImU32 color, std::string_view formula);
float formula_width(ImFont* font, std::string_view formula);

/// A rectangle of lines of whole pixels, inside min … max.
void outline(ImDrawList* list, ImVec2 min, ImVec2 max, ImU32 color, float thickness);

/// Lines of 45° through a rectangle, that many pixels apart.
void hatch(ImDrawList* list, ImVec2 min, ImVec2 max, float step, ImU32 color);

/// A one pixel line with a small filled head at its end; runs along an axis.
void draw_arrow(ImDrawList* list, ImVec2 from, ImVec2 to, ImU32 color, float head);

/// Every how many cells a label fits that needs that much room: 1, 2, 4, 8, …
std::size_t label_step(float pitch, float room);

}  // namespace app::widgets
