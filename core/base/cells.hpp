#pragma once

#include <armadillo>
#include <cstddef>
#include <vector>

#include "core/base/colour_map.hpp"

namespace core::colour {

/// What is drawn beside the colour of a cell, as a sum of bits; shaders/heatmap.frag names them alike.
namespace mark {
constexpr unsigned hidden = 1, dropped = 2, minus_infinity = 4, not_a_number = 8, above = 16, below = 32,
                   zero = 64;
}

/// How a cell is drawn.
struct CellLook {
  double place = 0;    ///< in the colour map, 0 … 1
  unsigned marks = 0;  ///< a sum of bits
};

/// A range of numbers and its colours.
struct Shading {
  ColourMap map = ColourMap::values;
  double low = -1, high = 1;
  double least = 0;   ///< of a logarithmic range: the smallest size with a colour of its own; 0 = linear
  bool dots = false;  ///< exact zeros are marked
};

/// The look of a number in a range; only a 0 is marked as hidden, as any other number counts; ∞ is beyond any
/// range and hatched as well, and what is smaller than the least size of a logarithmic range is below it.
CellLook look(const Shading& shading, double number, bool hidden, bool dropped);

/// A matrix's rows or columns in blocks of so many; the last block may have fewer.
struct Blocks {
  std::size_t begin = 0, end = 0, size = 1;
};

/// The number that stands for each block, a row of blocks after the other.
///
/// It is the largest number (of a signed map the one farthest from 0), NaN if the block has one, and −∞ only
/// when it has nothing else. Of a mask it is the mean: in a block of a random mask something is always kept.
std::vector<double> pooled(ColourMap map, const arma::mat& numbers, Blocks rows, Blocks columns);

/// Which number of several cells that is: "largest", "number farthest from 0", "mean".
const char* pooled_as(ColourMap map);

}  // namespace core::colour
