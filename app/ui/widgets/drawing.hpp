#pragma once

#include <imgui.h>
#include <cstddef>
#include <string>
#include <string_view>

#include "app/ui/frame.hpp"
#include "core/base/number.hpp"
#include "core/lessons/lessons.hpp"

namespace app::widgets {

// --- Items ---

/// Whether Enter went down on the last item, where the keyboard stands; it presses like the space bar in
/// every release of Dear ImGui.
bool entered_item();
/// Whether Enter went down and no item of the window took it before: what a dialog is for is done.
bool enter_confirms();
/// An invisible item that takes the mouse and the keyboard; true when it was pressed.
bool hit_area(const char* name, ImVec2 size);
/// Whether the keyboard stands on the last item, and shows it.
bool has_keyboard();
/// The outline around an item on which the keyboard stands.
void draw_focus(const Frame& frame, ImVec2 min, ImVec2 max);
/// An item of that size there, for what was drawn at places of its own.
void take_room(ImVec2 at, ImVec2 size);
/// A tooltip over the last item, for disabled items too.
void tooltip(const std::string& text);

// --- Shapes in the current window ---

/// A color with or without an alpha, for what is drawn.
struct Ink {
  Ink(Rgb color) : packed(app::packed(color)) {}  // NOLINT(google-explicit-constructor)
  Ink(ImU32 color) : packed(color) {}             // NOLINT(google-explicit-constructor)
  ImU32 packed;
};

void draw_rect(ImVec2 min, ImVec2 max, Ink ink, float rounding = 0);
/// A rectangle of lines of whole pixels, inside min … max.
void outline(ImVec2 min, ImVec2 max, Ink ink, float thickness, ImDrawList* list = ImGui::GetWindowDrawList());
/// Lines of 45° through a rectangle, that many pixels apart.
void hatch(ImVec2 min, ImVec2 max, float step, Ink ink);
/// Two lines that cross in a middle.
void draw_cross(ImVec2 middle, float arm, Ink ink, float thickness);
/// A one pixel line with a small filled head at its end; runs along an axis.
void draw_arrow(ImVec2 from, ImVec2 to, Ink ink, float head);
/// A bar on its ground, filled from the left up to a share.
void draw_share(const Frame& frame, ImVec2 min, ImVec2 max, double share, Ink ink);

// --- Text ---

using core::text::cell_text;
using core::text::CellRange;
using core::text::choose_format;
using core::text::fixed;
using core::text::number_text;
using core::text::NumberFormat;
using core::text::scientific;
using core::text::share_text;
using core::text::told_number;
using core::text::unit_for;
using core::text::unit_words;

/// A number as the inspector writes it: four decimals, or a power of ten when they would not tell it.
std::string inspected(double value);
/// A number with its sign: "+5.67", "−4.89".
std::string signed_text(double value, int decimals);
/// A count with its thousands set apart: "1,014".
std::string grouped(std::size_t count);
/// A token for display: blanks at its ends as "·", line ends as "⏎", tabs as "→".
std::string visible_token(std::string_view token);
/// The same in quotation marks.
std::string quoted_token(std::string_view token);

/// Which point of a text lies at the given position; "middle" centres figures and lower-case letters, not the
/// line box.
enum class Align { left_top, left_middle, right_middle, middle };

float text_width(ImFont* font, std::string_view text);
/// How much lower a text of a smaller font begins than one of a larger font on the same line.
float baseline_drop(ImFont* large, ImFont* small);
/// Where a line of a font begins so that its letters stand in the middle of a box of that height.
float centred_y(ImFont* font, float top, float height);
/// The text, or as much of it as fits the room with … at its end; never less than one character.
std::string shortened(ImFont* font, const std::string& text, float room);

/// Draws text at whole pixels.
void draw_text(ImFont* font, ImVec2 position, Align align, Ink ink, std::string_view text);
/// Draws text with its top left corner at pos.
void draw_text(ImFont* font, ImVec2 pos, Rgb color, std::string_view text);
/// Draws text that ends at right.
void draw_text_right(ImFont* font, float right, float y, Rgb color, std::string_view text);
/// Draws text that is at most width wide; shortened, it is whole in a tooltip.
void draw_text_within(ImFont* font, ImVec2 pos, float width, Rgb color, const std::string& text);
/// Draws text turned by a quarter, to be read from below; it begins at the bottom and is centred on x.
void draw_text_turned(ImFont* font, ImVec2 bottom_middle, Ink ink, std::string_view text);
/// Draws words in the middle of a row as high as a field.
void draw_label(const Frame& frame, ImFont* font, ImVec2 row, Rgb color, std::string_view words);

/// Text broken at a blank into at most two lines of that width, the second shortened.
void draw_two_lines(ImFont* font, ImVec2 pos, float width, float pitch, Rgb color, const std::string& text);
/// Text broken at the width, with the pitch of prose; returns how much room it took.
ImVec2 draw_prose(ImFont* font, ImVec2 left_top, float width, Rgb color, std::string_view text);
/// The same as an item of the window.
void paragraph(ImFont* font, Rgb color, float width, std::string_view text);
/// The capitals over a section, with a remark at the right: an item as high as it needs.
void section_heading(const Frame& frame, float width, const char* name, const std::string& remark = "");

/// Draws "X·W_q + b_q" with the letter or the digits after each underscore small and lowered; returns the
/// width.
float draw_formula(ImFont* font, ImVec2 left_top, Ink ink, std::string_view formula);
float formula_width(ImFont* font, std::string_view formula);

/// Text that can be pressed; underlined and an outline when it has the mouse or the keyboard. Marked in
/// landmarks.
bool link(const Frame& frame, const std::string& name, ImFont* font, ImVec2 at, Align align, Rgb color,
          const std::string& text);

/// Every how many cells a label fits that needs that much room: 1, 2, 4, 8, …
std::size_t label_step(float pitch, float room);

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
  /// Text on the line where the pen is, from the left edge or up to the right one.
  void at_left(ImFont* font, Rgb color, std::string_view text) const;
  void at_right(ImFont* font, Rgb color, std::string_view text) const;
};

// --- Words of the glossary ---

/// Prose broken at the width, in which terms of the glossary are underlined and explained on hover; an item
/// as high as it needs. Each term is underlined where it first stands.
void glossed_text(const Frame& frame, ImFont* font, Rgb color, float width, const std::string& text);
/// How high it will be.
float glossed_height(const Frame& frame, ImFont* font, float width, const std::string& text);
/// One line that begins there, drawn as it is with its terms underlined and explained on hover.
void glossed_line(const Frame& frame, ImFont* font, Rgb color, ImVec2 left_middle, const std::string& text);

/// The term that explains a stage.
const core::lessons::Term* term_of(Stage stage);
/// A term and its meaning, with what can be done there as the last line, as a tooltip.
void explain_term(const Frame& frame, const core::lessons::Term& term, const std::string& remark = "");

}  // namespace app::widgets

namespace app::panels {
using namespace widgets;
}
