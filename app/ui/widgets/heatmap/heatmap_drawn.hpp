#pragma once

// Shared by the parts of a heatmap; panels include heatmap_view.hpp.

#include <cmath>
#include <optional>

#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/heatmap/heatmap_view.hpp"

namespace app::widgets {

/// One heatmap at its position on the screen.
struct HeatmapLayout {
  const core::attention::StageInfo& stage;
  HeatmapNumbers numbers;
  ImVec2 corner, far;                  ///< of the picture
  CellWindow part;                     ///< the displayed part of the numbers
  float cell_width, cell_height;       ///< less than a pixel when cells are pooled
  std::optional<render::Cross> cross;  ///< the pinned row and column, where this stage has them
  bool row_only = false;               ///< the cross has no column here

  float x(double column) const { return corner.x + static_cast<float>(column - part.left) * cell_width; }
  float y(double row) const { return corner.y + static_cast<float>(row - part.top) * cell_height; }
  ImVec2 cell_min(std::size_t row, std::size_t column) const {
    return {std::round(x(static_cast<double>(column))), std::round(y(static_cast<double>(row)))};
  }
  ImVec2 cell_max(std::size_t row, std::size_t column) const { return cell_min(row + 1, column + 1); }
  /// Returns the middle of the text of a row, in pixels; the last pixel of a cell is the gap to the next.
  float middle_of_row(std::size_t row) const {
    return std::floor((cell_min(row, 0).y + cell_max(row, 0).y - 1) / 2);
  }
  bool shows_row(std::size_t row) const { return within(row, part.top, part.bottom); }
  bool shows_column(std::size_t column) const { return within(column, part.left, part.right); }

 private:
  /// Returns whether the middle of a cell is in a range.
  static bool within(std::size_t cell, double from, double to) {
    const double middle = static_cast<double>(cell) + 0.5;
    return middle >= from && middle <= to;
  }
};

/// Returns whether a map shows the numbers of a head, its own or those that heads share.
bool shows_head(const Frame& frame, const Heatmap& map, std::size_t head);

/// Returns the displayed cells that are on the screen, as half-open ranges.
CellRange cells_on_screen(const HeatmapLayout& d);

/// Returns whether all numbers of a stage can be read; if not, they are computed in the background.
bool is_ready(const Frame& frame, Stage stage, std::size_t head);

/// Returns the value range of a stage, or the last known one.
const ValueRange& stage_value_range(const Frame& frame, Stage stage, std::size_t head);

/// Returns whether the cells are those of a stage, of the live model or of another state.
bool has_cells_of_stage(const Heatmap& map);

/// Returns the counts of cells outside a color range, or nullptr while they are being counted.
const ClippedCounts* out_of_range_counts(const Frame& frame, Stage stage, std::size_t head,
                                         const ColorLimits& range);

/// Return whether masked cells are marked, and the mask (0 = masked), or nullptr until it is computed.
bool marks_masked(const Heatmap& map);

const arma::mat* displayed_mask(const Frame& frame, const Heatmap& map);

/// Return whether one cell is marked as masked, or as dropped.
bool is_masked(const Frame& frame, const Heatmap& map, std::size_t row, std::size_t column);

bool is_dropped(const Frame& frame, const Heatmap& map, std::size_t row, std::size_t column);

/// Returns the picture to request from the painter, without its position on the screen.
render::HeatmapPicture picture_of(const Frame& frame, const Heatmap& map, const HeatmapLayout& d,
                                  const ColorScale& scale);

/// Returns the color scale of a map.
ColorScale scale_of(const Frame& frame, const Heatmap& map);

/// Returns the value range of all numbers of a map.
ValueRange displayed_value_range(const Frame& frame, const Heatmap& map);

/// Returns the unit in which its numbers are written: 1, or a power of ten below it.
double unit_in(const Frame& frame, const Heatmap& map);

/// Font and format of the numbers in cells; the font is nullptr if they do not fit.
struct NumberStyle {
  ImFont* font = nullptr;
  NumberFormat format = {};
  bool is_bare = false;  ///< without the zero before the dot
};

NumberStyle number_style(const Frame& frame, const Heatmap& map, const HeatmapLayout& d);

void draw_row_labels(const Frame& frame, const Heatmap& map, const HeatmapLayout& d);

void draw_column_labels(const Frame& frame, const Heatmap& map, const HeatmapLayout& d);

/// Draws a faint × in each masked cell that is large enough, as it has no number.
void draw_masked(const Frame& frame, const Heatmap& map, const HeatmapLayout& d, const ColorScale& scale);

void draw_numbers(const Frame& frame, const Heatmap& map, const HeatmapLayout& d, const ColorScale& scale);

/// Draws the color bar below or right of a picture, with its ends, the extremes as triangles, and the chosen
/// cell's value; for 0/1 stages a legend. Notes next to it say where the picture is not exact.
void draw_color_bar(const Frame& frame, const Heatmap& map, const HeatmapLayout& d, const ColorScale& scale);

/// Draws row sums and entropies right of the picture.
void draw_gutters(const Frame& frame, const Heatmap& map, const HeatmapLayout& d);

/// Draws the cross, the pinned and the hovered cell, operands and results, and overridden cells.
void draw_marks(const Frame& frame, const Heatmap& map, const HeatmapLayout& d);

/// Marks the cells that the last edit changed: they flash briefly and keep a thin line.
void draw_changes(const Frame& frame, const Heatmap& map, const HeatmapLayout& d);

/// Draws the gradient of a map's stage in its place, with a tooltip of its own.
void draw_gradient_map(const Frame& frame, Heatmap map, ImVec2 top_left);

/// Handles hovering, pinning, zooming and panning with the mouse.
void handle_mouse(const Frame& frame, const Heatmap& map, const HeatmapLayout& d);

}  // namespace app::widgets
