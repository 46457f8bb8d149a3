#pragma once

#include <cstddef>
#include <vector>

#include "core/base/cells.hpp"
#include "core/out/map_figure.hpp"

namespace core::figures {

/// The cells of a map, or the blocks of cells that stand for them, as they are drawn.
struct Grid {
  Area picture;
  std::size_t rows = 0, columns = 0;  ///< of what is drawn
  std::size_t block_rows = 1, block_columns = 1;
  double cell_width = 0, cell_height = 0;
  bool separate = true;                 ///< cells are boxes of their own with one pixel between them
  std::vector<colour::CellLook> looks;  ///< rows × columns

  const colour::CellLook& look(std::size_t row, std::size_t column) const {
    return looks[row * columns + column];
  }
  Area cell(std::size_t row, std::size_t column) const {
    const double gap = separate ? 1 : 0;
    return {picture.x + static_cast<double>(column) * cell_width,
            picture.y + static_cast<double>(row) * cell_height, cell_width - gap, cell_height - gap};
  }
};

/// The colour of a cell, whatever is marked on it.
Rgb ground_of(const Map& map, const colour::CellLook& look, const colour::Palette& palette);

/// Colours, marks and numbers of all cells.
void draw_cells(DisplayList& list, const Map& map, const Grid& grid, const colour::Palette& palette);

/// The numbers in the cells; gives the unit they are written in.
double draw_numbers(DisplayList& list, const Map& map, const Grid& grid, const colour::Palette& palette);

}  // namespace core::figures
