#pragma once

#include <string>
#include <string_view>

#include "app/ui/frame.hpp"
#include "app/ui/widgets/drawing.hpp"

namespace app::widgets {

/// Where a line of a font begins so that its letters stand in the middle of a box of that height.
float centred_y(ImFont* font, float top, float height);

/// Draws plain text with its top left corner at pos.
void draw_text(ImFont* font, ImVec2 pos, Rgb color, std::string_view text);
/// Draws plain text that ends at right.
void draw_text_right(ImFont* font, float right, float y, Rgb color, std::string_view text);
/// Draws text that is at most width wide; shortened, it is whole in a tooltip.
void draw_text_within(ImFont* font, ImVec2 pos, float width, Rgb color, const std::string& text);

/// Text broken at a blank into at most two lines of that width, the second shortened.
void draw_two_lines(ImFont* font, ImVec2 pos, float width, float pitch, Rgb color, const std::string& text);

/// Text broken at the width, with the pitch of prose; returns how much room it took.
ImVec2 draw_prose(ImFont* font, ImVec2 left_top, float width, Rgb color, std::string_view text);
/// The same as an item of the window.
void paragraph(ImFont* font, Rgb color, float width, std::string_view text);

/// The capitals over a section, with a remark at the right: an item as high as it needs.
void section_heading(const Frame& frame, float width, const char* name, const std::string& remark = "");

/// A tooltip over the last item, for disabled items too.
void tooltip(const std::string& text);

}  // namespace app::widgets
