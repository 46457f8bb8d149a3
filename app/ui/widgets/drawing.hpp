#pragma once

#include <imgui.h>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "app/ui/frame.hpp"
#include "core/base/number.hpp"
#include "core/lessons/lessons.hpp"

namespace app::widgets {

// --- Items ---

/// Returns whether Enter was pressed on the last item with keyboard focus, so that it acts like Space in
/// every release of Dear ImGui.
bool enter_pressed_on_item();
/// Returns whether Enter was pressed and no item of the window used it, which confirms a dialog.
bool enter_confirms();
/// Adds an invisible item for mouse and keyboard; returns whether it was pressed.
bool hit_area(const char* name, ImVec2 size);
/// Returns whether the last item has a visible keyboard focus.
bool has_keyboard_focus();
/// Draws an outline around the last item if it has the keyboard focus.
void draw_focus(const Frame& frame, ImVec2 min, ImVec2 max);
/// Adds an empty item of that size, to reserve the room of a drawing.
void reserve_room(ImVec2 at, ImVec2 size);
/// Shows a tooltip on the last item, even if it is disabled.
void tooltip(const std::string& text);
/// Returns whether the mouse is over a part of the window, item or not.
bool hovers(ImVec2 min, ImVec2 max);
/// Returns the rectangle of the current window; its draw list clips to the padding within.
Rect window_rect();

// --- Shapes in the current window ---

/// Color of a drawing, with or without alpha.
struct Ink {
  Ink(Rgb color) : packed(app::packed(color)) {}  // NOLINT(google-explicit-constructor)
  Ink(ImU32 color) : packed(color) {}             // NOLINT(google-explicit-constructor)
  ImU32 packed;
};

void draw_rect(ImVec2 min, ImVec2 max, Ink ink, float rounding = 0);
/// Draws the outline of a rectangle in whole pixels, inside min … max.
void outline(ImVec2 min, ImVec2 max, Ink ink, float thickness, ImDrawList* list = ImGui::GetWindowDrawList());
/// Fills a rectangle with lines at 45°, `step` pixels apart.
void hatch(ImVec2 min, ImVec2 max, float step, Ink ink);
/// Draws two lines that cross in the middle.
void draw_cross(ImVec2 middle, float arm, Ink ink, float thickness);
/// Dims the map of an ablated head, and crosses it out.
void draw_ablated(const Frame& frame, ImVec2 min, ImVec2 max);
/// Draws a one-pixel line along an axis with a small filled head at its end.
void draw_arrow(ImVec2 from, ImVec2 to, Ink ink, float head);
/// Draws a bar on its background, filled from the left up to a share, 0 … 1.
void draw_fraction_bar(const Frame& frame, ImVec2 min, ImVec2 max, double share, Ink ink);
/// Draws a bar on its background, from the middle to a share of −1 … 1 in the colors of signed numbers.
void draw_signed_bar(const Frame& frame, ImVec2 min, ImVec2 max, double share);
/// Draws the colors of a color map from its low end at the left to its high end.
void draw_color_map(const Frame& frame, ImVec2 min, ImVec2 max, render::ColorMap map);
/// Draws a check mark.
void draw_tick(const Frame& frame, ImVec2 middle, Ink ink);
/// Draws a key cap from left_middle and returns its width, which key_cap_width() returns without drawing.
float draw_key_cap(const Frame& frame, ImFont* font, ImVec2 left_middle, std::string_view key,
                   Rgb background);
float key_cap_width(const Frame& frame, ImFont* font, std::string_view key);

// --- Text ---

using core::text::cell_text;
using core::text::CellRange;
using core::text::choose_format;
using core::text::display_number;
using core::text::fixed;
using core::text::fraction_text;
using core::text::number_text;
using core::text::NumberFormat;
using core::text::scientific;
using core::text::unit_for;
using core::text::unit_text;

/// Returns a number as in the inspector: four decimals, or a power of ten if these do not suffice.
std::string inspector_text(double value);
/// Returns a number with its sign: "+5.67", "−4.89".
std::string signed_text(double value, int decimals);
/// Returns a count with grouped thousands: "1,014".
std::string count_text(std::size_t count);
/// Returns a date as "today, 09:12", "23 Nov" or "18 Nov 2025", from seconds since 1970; "" for 0.
std::string date_text(std::int64_t seconds);
/// Returns a token for display: spaces at its ends as "·", line ends as "⏎", tabs as "→".
std::string visible_token(std::string_view token);
/// Returns the same in quotation marks.
std::string quoted_token(std::string_view token);

/// The point of a text that is at the given position; "middle" centers digits and lower-case letters, not the
/// line box.
enum class Align { left_top, left_middle, right_middle, middle };

float text_width(ImFont* font, std::string_view text);
/// Returns how much lower a smaller font begins than a larger one on the same baseline, in pixels.
float baseline_drop(ImFont* large, ImFont* small);
/// Returns the y of a line of text that is centered in a box of that height.
float centered_y(ImFont* font, float top, float height);
/// Returns the text, or the beginning of it that fits with … at its end; at least "…".
std::string shortened(ImFont* font, const std::string& text, float room);

/// Draws text at whole pixels; returns its width.
float draw_text(ImFont* font, ImVec2 position, Align align, Ink ink, std::string_view text);
/// Draws text with its top left corner at pos; returns its width.
float draw_text(ImFont* font, ImVec2 pos, Rgb color, std::string_view text);
/// Draws text that ends at right.
void draw_text_right(ImFont* font, float right, float y, Rgb color, std::string_view text);
/// Draws text at most `width` wide; if it is cut, a tooltip shows all of it.
void draw_text_within(ImFont* font, ImVec2 pos, float width, Rgb color, const std::string& text);
/// Draws text rotated by 90°, read from bottom to top; it begins at the bottom and is centered on x.
void draw_text_rotated(ImFont* font, ImVec2 bottom_middle, Ink ink, std::string_view text);
/// Draws text vertically centered in a row as high as a field.
void draw_label(const Frame& frame, ImFont* font, ImVec2 row, Rgb color, std::string_view words);

/// Draws text broken at spaces into at most so many lines of that width, the last one shortened.
void draw_lines(ImFont* font, ImVec2 pos, float width, float pitch, Rgb color, std::string_view text,
                std::size_t max_lines = 2);
/// Draws text wrapped at the width, with the line pitch of prose; returns its size in pixels.
ImVec2 draw_prose(ImFont* font, ImVec2 left_top, float width, Rgb color, std::string_view text);
/// Draws the same as an item of the window.
void paragraph(ImFont* font, Rgb color, float width, std::string_view text);
/// Begins a window with a border on top of others, as large as its contents, to be ended by ImGui::End().
void begin_note(const Frame& frame, const char* name, Rgb border, ImGuiWindowFlags flags = 0);
/// Adds the heading of a section as an item, with a remark at the right.
void section_heading(const Frame& frame, float width, const char* name, const std::string& remark = "");

/// Draws "X·W_q + b_q" with the letter or digits after each underscore as a subscript; returns the width.
float draw_formula(ImFont* font, ImVec2 left_top, Ink ink, std::string_view formula);
float formula_width(ImFont* font, std::string_view formula);

/// Draws clickable text, underlined on hover and outlined with keyboard focus, and marks it in landmarks;
/// returns whether it was pressed.
bool link(const Frame& frame, const std::string& name, ImFont* font, ImVec2 at, Align align, Rgb color,
          const std::string& text, const std::string& help = "");

/// Returns the step at which labels that need that much room fit: every 1, 2, 4, 8, … cells.
std::size_t label_step(float pitch, float room);

/// Places of items side by side, in as many lines as a width requires.
struct Flow {
  ImVec2 start;
  float width, gap, pitch;  ///< of all; between items; from line to line
  ImVec2 next = start;      ///< top left corner of an item that fits the line

  /// Returns the top left corner of the next item, which has that width.
  ImVec2 place(float item);
};

/// Writer of lines from top to bottom between two edges; y is the start of the next line.
struct Pen {
  const Frame& frame;
  float left, right, y;

  void skip(float length) { y += frame.metrics.px(length); }
  /// Draws a horizontal line, with room above and below.
  void rule();
  void heading(const std::string& words);
  /// Draws words at the left and a number at the right.
  void pair(const std::string& words, const std::string& number);
  /// Draws the same with the number as a link; returns whether it was pressed.
  bool linked_pair(const std::string& name, const std::string& words, const std::string& number);
  /// Draws words at the left, a bar that begins in the middle of its room, and a number at the right.
  void share(const std::string& words, double value, double end);
  void prose(const std::string& words, Rgb color);
  /// Draw text on the current line, from the left edge or up to the right one.
  void at_left(ImFont* font, Rgb color, std::string_view text) const;
  void at_right(ImFont* font, Rgb color, std::string_view text) const;
};

// --- Glossary terms ---

/// Adds wrapped text as an item as high as it needs; the first occurrence of each glossary term is underlined
/// and explained on hover.
void draw_glossary_text(const Frame& frame, ImFont* font, Rgb color, float width, const std::string& text);
/// Returns the height of that item, in pixels.
float glossary_text_height(const Frame& frame, ImFont* font, float width, const std::string& text);
/// Draws one line from left_middle, with its terms underlined and explained on hover.
void draw_glossary_line(const Frame& frame, ImFont* font, Rgb color, ImVec2 left_middle,
                        const std::string& text);

/// Returns the term that explains a stage.
const core::lessons::Term* term_of(Stage stage);
/// Shows a tooltip with a term, its meaning and, as the last line, the possible actions.
void explain_term(const Frame& frame, const core::lessons::Term& term, const std::string& remark = "");

}  // namespace app::widgets

namespace app::panels {
using namespace widgets;
}
