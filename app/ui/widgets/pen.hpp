#pragma once

#include <string>

#include "app/ui/frame.hpp"
#include "app/ui/widgets/drawing.hpp"

namespace app::widgets {

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
