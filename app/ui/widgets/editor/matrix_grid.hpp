#pragma once

#include <imgui.h>

#include <cstddef>
#include <optional>

#include "app/theme/theme.hpp"

namespace app::widgets {

/// Where the cells of a matrix stand on the screen; only the visible ones need to be looked at.
struct MatrixGrid {
  struct Range {
    std::size_t first = 0, end = 0;
  };
  struct Cell {
    std::size_t row = 0, column = 0;
  };

  std::size_t n_rows = 0, n_columns = 0;
  ImVec2 origin;              ///< top left corner of everything, scrolled
  ImVec2 view_min, view_max;  ///< the part of the screen that can be seen
  float label_width = 0, header_height = 0, gap = 2;
  ImVec2 pitch;  ///< of the cells, their gaps included

  ImVec2 size() const;  ///< of everything, in pixels
  ImVec2 cell_min(std::size_t row, std::size_t column) const;
  ImVec2 cell_size() const { return {pitch.x - gap, pitch.y - gap}; }
  Range visible_rows() const;
  Range visible_columns() const;
  /// Row labels stay where they are when the columns scroll, column labels when the rows scroll.
  float label_left() const { return view_min.x; }
  float header_top() const { return view_min.y; }
  std::optional<Cell> cell_at(ImVec2 pos) const;
  /// The row whose label is at pos.
  std::optional<std::size_t> label_at(ImVec2 pos) const;
  /// How far the window must scroll, right and down, for a cell to be seen in full.
  ImVec2 scroll_to(std::size_t row, std::size_t column) const;
};

/// A grid whose columns are as wide as fit, at least so that their numbers do; origin and view are still to
/// be set.
MatrixGrid matrix_grid(const Metrics& metrics, std::size_t n_rows, std::size_t n_columns, float label_width,
                       float width, float numbers_width);

}  // namespace app::widgets
