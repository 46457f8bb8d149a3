#pragma once

#include <string>
#include <vector>

#include "app/ui/frame.hpp"
#include "app/ui/widgets/heatmap/heatmap_view.hpp"

namespace app::panels {

/// One stage of the strip with its place relative to the strip's corner.
struct StripMap {
  widgets::Heatmap map;
  ImVec2 title, labels;  ///< top left of the title's text and of the labels above the picture
  float width = 0;       ///< with labels and bar
};

/// A row of maps; a line of the strip may need several.
struct StripRow {
  int line = 1;       ///< 1 … 4
  bool first = true;  ///< whether the line's heading stands above it
  float heading = 0;  ///< y of the heading, or of the return arrow
  float top = 0, bottom = 0;
  std::vector<StripMap> maps;
};

/// The way from the dropout mask's title to many masks.
constexpr const char* laboratory_link = "laboratory";

/// Whose numbers a stage shows when heads share them: "group 0 (heads 0, 1)"; else "".
std::string group_words(const Frame& frame, Stage stage);

/// Places all visible stages into the given width; cells grow until the strip fills width and height.
std::vector<StripRow> lay_out_strip(const Frame& frame, float width, float height);

}  // namespace app::panels
