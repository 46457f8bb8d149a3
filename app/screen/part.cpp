#include "app/screen/part.hpp"

#include <algorithm>

namespace app::render {
namespace {

std::size_t tiles(std::size_t texels, std::size_t side) {
  return (texels + side - 1) / side;
}

/// Four cells of a grid become one, which is set when one of them is.
std::vector<bool> halved(const std::vector<bool>& grid, std::size_t columns) {
  const std::size_t rows = grid.size() / columns, half_columns = tiles(columns, 2);
  std::vector<bool> half(tiles(rows, 2) * half_columns);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c)
      if (grid[r * columns + c]) half[r / 2 * half_columns + c / 2] = true;
  return half;
}

std::vector<Part> runs(const std::vector<bool>& grid, std::size_t columns) {
  std::vector<Part> parts;
  for (std::size_t row = 0; row * columns < grid.size(); ++row)
    for (std::size_t column = 0; column < columns; ++column) {
      if (!grid[row * columns + column]) continue;
      Part run{column, row, column, row + 1};
      while (run.right < columns && grid[row * columns + run.right]) ++run.right;
      column = run.right;
      const auto above = std::find_if(parts.begin(), parts.end(), [&](const Part& p) {
        return p.left == run.left && p.right == run.right && p.bottom == row;
      });
      if (above != parts.end())
        ++above->bottom;
      else
        parts.push_back(run);
    }
  return parts;
}

}  // namespace

std::vector<Part> joined(const std::vector<bool>& grid, std::size_t columns, std::size_t most) {
  std::vector<Part> parts = runs(grid, columns);
  const std::size_t rows = columns == 0 ? 0 : grid.size() / columns;
  std::vector<bool> coarse = grid;
  std::size_t coarse_columns = columns;
  for (std::size_t size = 2; parts.size() > most; size *= 2) {
    coarse = halved(coarse, coarse_columns);
    coarse_columns = tiles(coarse_columns, 2);
    parts = runs(coarse, coarse_columns);
    for (Part& p : parts)
      p = {p.left * size, p.top * size, std::min(p.right * size, columns), std::min(p.bottom * size, rows)};
  }
  return parts;
}

ChangedTiles::ChangedTiles(std::size_t rows, std::size_t columns)
    : columns_(tiles(columns, tile)), all_{0, 0, columns, rows}, grid_(tiles(rows, tile) * columns_) {}

std::vector<Part> ChangedTiles::parts(std::size_t most) const {
  std::vector<Part> parts = joined({grid_.begin(), grid_.end()}, columns_, most);
  for (Part& p : parts)
    p = {p.left * tile, p.top * tile, std::min(p.right * tile, all_.right),
         std::min(p.bottom * tile, all_.bottom)};
  return parts;
}

}  // namespace app::render
