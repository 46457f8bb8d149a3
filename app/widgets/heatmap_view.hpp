#pragma once

#include <imgui.h>

#include <string>

#include "app/frame.hpp"

namespace app::widgets {

/// One heatmap: which numbers, how large, and what stands around it.
struct Heatmap {
  std::string place;  ///< landmark and key of the picture: "strip/weights"
  Stage stage = Stage::weights;
  std::size_t head = 0;
  int width = 0, height = 0;  ///< of the picture in pixels
  float label_width = 0;      ///< room left of the picture for the rows' names
  bool row_tokens = true;     ///< else indices only
  bool column_tokens = true;  ///< likewise, above the picture; only for stages with a column a token
  bool bar_beside = false;    ///< the colour bar stands right of the picture instead of below
  bool show_bar = true;
};

/// Heights and widths around the picture, in pixels.
float column_label_height(const Frame& frame, const Heatmap& map);
float bar_room(const Frame& frame, const Heatmap& map);

/// Draws the picture with labels, numbers, marks and bar; its labels start at top_left.
///
/// Hovering previews a cell and a click pins it, or releases it when it is pinned.
void draw_heatmap(const Frame& frame, const Heatmap& map, ImVec2 top_left);

/// The two ends of a stage's colours.
struct Ends {
  double low = 0, high = 1;
};
Ends colour_ends(const Frame& frame, Stage stage, std::size_t head);

}  // namespace app::widgets
