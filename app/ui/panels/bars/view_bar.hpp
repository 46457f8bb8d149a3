#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

/// The row above the pictures: which view, whose colors, which head.
void draw_view_bar(const Frame& frame);

/// What the shown view can be told, from right to left; in a menu where it has not so much room.
void draw_view_controls(const Frame& frame, float right, float top, float room);

/// A tooltip over the last item of the bar.
void bar_tooltip(const Frame& frame, const char* text);

/// The width that the fields of Layers take, with a label before each or without.
float layers_controls_width(const Frame& frame, bool labelled);

/// What the maps and the bars of Layers show, from right to left on one line; marked "view/maps",
/// "view/bars".
void draw_layers_controls(const Frame& frame, float right, float top, bool labelled);

/// Either field alone, for a menu; it ends at the right.
void draw_maps_chooser(const Frame& frame, float right, float top);
void draw_bars_chooser(const Frame& frame, float right, float top);

}  // namespace app::panels
