#pragma once

// What the pieces of a heatmap share; panels include heatmap_view.hpp.

#include <cmath>
#include <optional>

#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/heatmap/heatmap_view.hpp"

namespace app::widgets {

/// One map as it stands on the screen.
struct Drawn {
  const core::attention::StageInfo& stage;
  Numbers numbers;
  ImVec2 corner, far;                  ///< of the picture
  CellWindow part;                     ///< what is shown of the numbers
  float cell_width, cell_height;       ///< less than a pixel when cells are pooled
  std::optional<render::Cross> cross;  ///< the pinned row and column, as far as they mean something here
  bool row_only = false;               ///< the cross has no column here

  float x(double column) const { return corner.x + static_cast<float>(column - part.left) * cell_width; }
  float y(double row) const { return corner.y + static_cast<float>(row - part.top) * cell_height; }
  ImVec2 cell_min(std::size_t row, std::size_t column) const {
    return {std::round(x(static_cast<double>(column))), std::round(y(static_cast<double>(row)))};
  }
  ImVec2 cell_max(std::size_t row, std::size_t column) const { return cell_min(row + 1, column + 1); }
  /// Where numbers and names of a row have their middle; the last pixel of a cell is the gap to the next.
  float middle_of_row(std::size_t row) const {
    return std::floor((cell_min(row, 0).y + cell_max(row, 0).y - 1) / 2);
  }
  bool shows_row(std::size_t row) const { return within(row, part.top, part.bottom); }
  bool shows_column(std::size_t column) const { return within(column, part.left, part.right); }

 private:
  /// Whether a cell's middle lies between two places.
  static bool within(std::size_t cell, double from, double to) {
    const double middle = static_cast<double>(cell) + 0.5;
    return middle >= from && middle <= to;
  }
};

/// Whether a map shows that head's numbers, its own or those that its group shares.
bool shows_head(const Frame& frame, const Heatmap& map, std::size_t head);

/// Cells of the shown part that are on the screen, from the first to before the last.
CellRange cells_on_screen(const Drawn& d);

/// Whether all numbers of a stage can be read now; else they soon will be.
bool is_ready(const Frame& frame, Stage stage, std::size_t head);

/// The extent of a stage's numbers, or the last that is known.
const ValueRange& extent_of_stage(const Frame& frame, Stage stage, std::size_t head);

/// Whether the cells are those of a stage, its own or another state's.
bool has_cells_of_stage(const Heatmap& map);

/// The cells of a stage beyond a range of colors, or nullptr while they are being counted.
const Beyond* cells_outside(const Frame& frame, Stage stage, std::size_t head, const Ends& range);

/// Whether cells that the mask hides are marked here, and which those are: nullptr while that is being made.
bool marks_hidden(const Heatmap& map);

const arma::mat* visible_cells(const Frame& frame, const Heatmap& map);

/// Whether one cell is marked as hidden, or as dropped.
bool is_hidden(const Frame& frame, const Heatmap& map, std::size_t row, std::size_t column);

bool is_dropped(const Frame& frame, const Heatmap& map, std::size_t row, std::size_t column);

/// The picture that is asked of the painter, without its place on the screen.
render::Picture picture_of(const Frame& frame, const Heatmap& map, const Drawn& d, const ColorScale& scale);

/// The colors of its numbers.
ColorScale scale_of(const Frame& frame, const Heatmap& map);

/// The extent of all of its numbers.
ValueRange shown_extent(const Frame& frame, const Heatmap& map);

/// The unit in which they are written, 1 or a power of ten below it.
double unit_in(const Frame& frame, const Heatmap& map);

/// How the numbers stand in its cells: in which font, or nullptr where there is no room for them.
struct CellDigits {
  ImFont* font = nullptr;
  NumberFormat format = {};
};

CellDigits cell_digits(const Frame& frame, const Heatmap& map, const Drawn& d);

void draw_row_labels(const Frame& frame, const Heatmap& map, const Drawn& d);

void draw_column_labels(const Frame& frame, const Heatmap& map, const Drawn& d);

/// A faint × in each masked cell that is large enough: it has no number.
void draw_masked(const Frame& frame, const Heatmap& map, const Drawn& d, const ColorScale& scale);

void draw_numbers(const Frame& frame, const Heatmap& map, const Drawn& d, const ColorScale& scale);

/// The color bar below or beside a picture, with its ends, the true extremes as triangles, and the chosen
/// cell's value; for 0/1 stages a legend. What the picture cannot show as it is stands beside it in words.
void draw_bar(const Frame& frame, const Heatmap& map, const Drawn& d, const ColorScale& scale);

/// Row sums and entropies right of the picture.
void draw_gutters(const Frame& frame, const Heatmap& map, const Drawn& d);

/// The cross, the pinned and the hovered cell, operands and results, cells switched by hand.
void draw_marks(const Frame& frame, const Heatmap& map, const Drawn& d);

/// The cells that the last edit changed: they are lit for a moment and keep a thin line.
void draw_changes(const Frame& frame, const Heatmap& map, const Drawn& d);

/// Hovering, pinning, zooming and moving with the mouse.
void handle_mouse(const Frame& frame, const Heatmap& map, const Drawn& d);

}  // namespace app::widgets
