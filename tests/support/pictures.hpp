#pragma once

#include "app/render/painter.hpp"

namespace support {

/// The whole matrix on cells of that size; range 0 … 1, of signed stages −1 … 1.
inline app::render::Picture whole_picture(const arma::mat& numbers, app::render::ColourMap map,
                                          int cell_width, int cell_height) {
  app::render::Picture p;
  p.place = "test", p.numbers = &numbers, p.map = map;
  p.low = map == app::render::ColourMap::values ? -1 : 0;
  p.right = static_cast<double>(numbers.n_cols), p.bottom = static_cast<double>(numbers.n_rows);
  p.width = cell_width * static_cast<int>(numbers.n_cols),
  p.height = cell_height * static_cast<int>(numbers.n_rows);
  return p;
}

}  // namespace support
