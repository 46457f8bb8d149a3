#pragma once

#include <cstddef>
#include <vector>

#include "app/render/painter.hpp"
#include "core/colour/cells.hpp"

namespace app::render {

namespace mark = core::colour::mark;

/// One cell, or one block of cells, as the shader gets it.
struct Texel {
  float place = 0;  ///< in the colour map, 0 … 1
  float marks = 0;  ///< a sum of bits
  friend bool operator==(const Texel&, const Texel&) = default;
};

/// The visible part of a matrix, a row of texels after the other.
struct Texels {
  std::size_t rows = 0, columns = 0;
  double left = 0, top = 0;                     ///< the picture's corner, in texels from the first one
  double across = 0, down = 0;                  ///< the picture's size, in texels
  std::size_t first_row = 0, first_column = 0;  ///< the first texel's place in the pooled matrix
  Pooling pooling;
  std::vector<Texel> data;  ///< rows × columns
};

/// The numbers of a picture as texels, pooled where the matrix is larger than the picture.
///
/// A block shows its largest number (of signed stages the one farthest from 0); NaN if it has one; −∞ only
/// when it has nothing else; it is hidden or dropped only when every cell of it is. An empty picture has no
/// texels.
Texels texels(const Picture& picture);

/// One number of a picture, or the one that a block of it shows.
Texel texel(const Picture& picture, double number, bool hidden, bool dropped);

/// The largest number of each block of a whole matrix, a row after the other: 0 only where every cell of the block is 0.
std::vector<double> block_flags(const arma::mat& flags, Pooling block);

}  // namespace app::render
