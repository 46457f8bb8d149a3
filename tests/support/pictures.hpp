#pragma once

#include <cmath>
#include <cstddef>
#include <limits>

#include "app/screen/heatmap_image.hpp"

namespace support {

/// Returns a picture of the whole matrix, cell sizes in pixels; range 0 … 1, in signed maps −1 … 1.
inline app::render::HeatmapPicture whole_picture(const arma::mat& numbers, app::render::ColorMap map,
                                                 int cell_width, int cell_height) {
  app::render::HeatmapPicture p;
  p.place = "test", p.cells.numbers = &numbers, p.map = map;
  p.low = map == app::render::ColorMap::values ? -1 : 0;
  p.part.right = static_cast<double>(numbers.n_cols), p.part.bottom = static_cast<double>(numbers.n_rows);
  p.width = cell_width * static_cast<int>(numbers.n_cols),
  p.height = cell_height * static_cast<int>(numbers.n_rows);
  return p;
}

/// Replaces n numbers x by eˣ for RowView, with the standard library.
inline void exponentials(double* numbers, std::size_t n) {
  for (std::size_t k = 0; k < n; ++k) numbers[k] = std::exp(numbers[k]);
}

/// Returns the blocks of a picture, all of them read.
inline app::render::PooledMatrix pooled(const app::render::HeatmapPicture& p) {
  core::ThreadPool threads(3);
  app::render::PooledMatrix m;
  m.begin(p);
  m.read(p, std::numeric_limits<double>::infinity(), threads);
  return m;
}

/// Returns the pixels of a picture whose numbers are read from a matrix at once.
inline std::vector<std::uint32_t> pixels_of(const arma::mat& numbers, app::render::HeatmapPicture p) {
  core::ThreadPool threads(3);
  app::render::HeatmapImage image(threads);
  p.cells.rows = {};
  p.cells.numbers = &numbers;
  image.read(p, std::numeric_limits<double>::infinity());
  image.paint(p, 1);
  return image.pixels();
}

}  // namespace support
