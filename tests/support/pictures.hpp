#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "app/screen/picture.hpp"

namespace support {

/// The whole matrix on cells of that size; range 0 … 1, of signed stages −1 … 1.
inline app::render::Picture whole_picture(const arma::mat& numbers, app::render::ColorMap map, int cell_width,
                                          int cell_height) {
  app::render::Picture p;
  p.place = "test", p.cells.numbers = &numbers, p.map = map;
  p.low = map == app::render::ColorMap::values ? -1 : 0;
  p.part.right = static_cast<double>(numbers.n_cols), p.part.bottom = static_cast<double>(numbers.n_rows);
  p.width = cell_width * static_cast<int>(numbers.n_cols),
  p.height = cell_height * static_cast<int>(numbers.n_rows);
  return p;
}

/// All texels of a picture of a matrix, at once.
inline app::render::Texels texels(const app::render::Picture& p) {
  core::ThreadPool only_this_one(1);
  app::render::MatrixTexels all(p);
  all.advance(p, std::numeric_limits<double>::infinity(), only_this_one);
  return std::move(all).texels();
}

/// The texels of a picture whose rows are known, made of the same numbers as a matrix.
inline app::render::Texels texels_of_matrix(const arma::mat& numbers, app::render::Picture p) {
  p.cells.rows = {};
  p.cells.numbers = &numbers;
  return texels(p);
}

/// What RowView ask for: eˣ of n numbers, by the standard library.
inline void exponentials(double* numbers, std::size_t n) {
  for (std::size_t k = 0; k < n; ++k) numbers[k] = std::exp(numbers[k]);
}

}  // namespace support
