#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

/// Draws the reservations about a document read from a file, above the views: a line for features of the
/// model that are not supported, and one for the rest; in full in a tooltip.
///
/// Landmarks "banner/left_out" and "banner/reservations".
void draw_banner(const Frame& frame);

/// Returns its height in pixels; 0 where there is nothing to say.
float banner_height(const Frame& frame);

/// Draws the menus and the document's title, in a window of Metrics::menu height made with
/// ImGuiWindowFlags_MenuBar.
void draw_menu_bar(const Frame& frame);

/// Whether a narrow window shows the inspector below MODEL in place of EDIT.
bool inspector_replaces_edit(const Frame& frame);

/// Draws EDIT and INSPECTOR as tabs, where a window is too narrow for both.
void draw_side_tabs(const Frame& frame);

/// Returns their height in pixels; 0 in wider windows.
float side_tabs_height(const Frame& frame);

/// Draws the status bar: hints for the mouse, the last message, the time of the computation and the shape.
void draw_status(const Frame& frame);

/// Draws the context menu of a right-clicked cell: copies matrix, row or number in every form, or the model
/// as a program; traces, masks, overrides or exports. Landmarks "menu/copy/matrix/csv", "menu/copy/program".
void draw_cell_menu(const Frame& frame);

/// A view and what it shows.
struct TabTitle {
  Tab tab;
  const char* title;
  const char* about;
};
const TabTitle& tab_title(Tab tab);

/// Draws the row above the pictures: the tabs of the views, and color, head and layer of the displayed one.
void draw_view_bar(const Frame& frame);

}  // namespace app::panels
