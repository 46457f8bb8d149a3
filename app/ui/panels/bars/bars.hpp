#pragma once

#include <string>

#include "app/ui/frame.hpp"

namespace app::panels {

/// What a document of a file leaves out, assumes and does not use, as long as it is open: a line over the
/// views for what the model does and the program does not, and one for the rest; whole in a tooltip.
///
/// Landmarks "banner/left_out" and "banner/reservations".
void draw_banner(const Frame& frame);

/// How high it is: 0 where there is nothing to say.
float banner_height(const Frame& frame);

/// The menus and the document's title, in a window of Metrics::menu height made with
/// ImGuiWindowFlags_MenuBar.
void draw_menu_bar(const Frame& frame);

/// Whether a narrow window shows the inspector below MODEL, and not EDIT.
bool inspects_in_place(const Frame& frame);

/// EDIT and INSPECTOR as tabs, where a window is too narrow for both.
void draw_side_tabs(const Frame& frame);

/// The height that they take; 0 in wider windows.
float side_tabs_height(const Frame& frame);

/// The line at the foot: what the mouse does here, the last message, the time of the computation and the
/// shape.
void draw_status(const Frame& frame);

/// "Copy as" for the cell under the mouse when its heatmap is clicked with the right button: matrix, row and
/// number in every form, decimals, and the model as a program. Landmarks "menu/copy/matrix/csv",
/// "menu/copy/program".
void draw_copy_popup(const Frame& frame);

/// The row above the pictures: which view, whose colors, which head.
void draw_view_bar(const Frame& frame);

}  // namespace app::panels
