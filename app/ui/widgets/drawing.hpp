#pragma once

#include <imgui.h>
#include <cstddef>
#include <string>
#include <string_view>

#include "app/ui/frame.hpp"

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

/// A number as the inspector writes it: four decimals, or a power of ten when they would not tell it.
std::string inspected(double value);

/// Text that can be pressed; underlined and an outline when it has the mouse or the keyboard. Marked in
/// landmarks.
bool link(const Frame& frame, const std::string& name, ImFont* font, ImVec2 at, Align align, Rgb color,
          const std::string& text);

/// Writes lines from top to bottom between two edges; y is where the next begins.
struct Pen {
  const Frame& frame;
  float left, right, y;

  void skip(float length) { y += frame.metrics.px(length); }
  /// A line across, with room above and below.
  void rule();
  void heading(const std::string& words);
  /// Words at the left, a number at the right.
  void pair(const std::string& words, const std::string& number);
  /// The same; true when the number was pressed.
  bool linked_pair(const std::string& name, const std::string& words, const std::string& number);
  /// Words at the left, a bar that begins in the middle of its room, a number at the right.
  void share(const std::string& words, double value, double end);
  void prose(const std::string& words, Rgb color);
};

}  // namespace app::widgets
