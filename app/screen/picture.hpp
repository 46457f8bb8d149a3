#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "app/screen/painter.hpp"
#include "core/base/color.hpp"
#include "core/base/thread_pool.hpp"

namespace app::render {

namespace mark = core::color::mark;

constexpr unsigned light_ink = 128;  ///< beside the marks: on this color the light ink is the one to see

/// One cell, or one block of cells, as the shader gets it: four bytes.
struct Texel {
  Rgb color;               ///< of its number; zero's, where it is dropped
  std::uint8_t marks = 0;  ///< a sum of bits
  friend bool operator==(const Texel& a, const Texel& b) {
    return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
  }
};
static_assert(sizeof(Texel) == 4);

/// How the numbers of one picture become texels.
class Shades {
 public:
  explicit Shades(const Picture& picture);
  /// Of one number, or of the one that a block shows.
  Texel operator()(double number, bool hidden, bool dropped) const {
    if (number == 0 && hidden && !dropped) return hidden_zero_;
    const bool is_plain =
        number >= low_ && number <= high_ && !hidden && !dropped && !(shading_.dots && number == 0);
    return is_plain ? std::bit_cast<Texel>(colors_(place_ + (number - low_) * slope_))
                    : marked(number, hidden, dropped);
  }

 private:
  /// The general way.
  Texel marked(double number, bool hidden, bool dropped) const;

  core::color::Shading shading_;
  core::color::MapColors colors_;
  Rgb zero_;
  Texel hidden_zero_;
  double low_ = 1, high_ = 0, place_ = 0,
         slope_ = 0;  // of a linear range, as most are: the lowest number's place, and how fast it grows
};

/// The visible part of a matrix, a row of texels after the other.
struct Texels {
  std::size_t rows = 0, columns = 0;
  std::size_t first_row = 0, first_column = 0;  ///< the first texel's place in the pooled matrix
  Pooling pooling;
  std::vector<Texel> data;  ///< rows × columns
};

/// Where a picture's part of the matrix lies among texels.
struct Placing {
  double left = 0, top = 0;     ///< the picture's corner, in texels from the first one
  double across = 0, down = 0;  ///< the picture's size, in texels
};
Placing placing(const Picture& picture, const Texels& texels);

/// The numbers of a picture as texels, pooled where the matrix is larger than the picture; some columns at a
/// time, where all of them would take longer than a frame.
///
/// A block shows what core::color::pooled() makes of it; it is hidden or dropped only when every cell of it
/// is. An empty picture has no texels.
class MatrixTexels {
 public:
  explicit MatrixTexels(const Picture& picture);
  /// Goes on with about so many cells of the same picture; whether all texels are made.
  bool advance(const Picture& picture, double cells, core::ThreadPool& threads);
  /// Once all are made.
  Texels texels() && { return std::move(texels_); }

 private:
  /// The texels of some columns.
  void make(const Picture& picture, const Shades& shades, std::size_t first, std::size_t last);

  core::color::Blocks rows_, columns_;
  Texels texels_;
  std::size_t made_ = 0;  // columns of texels
};

/// Of each block of a whole matrix, a row after the other: 0 where every cell of the block is 0, else 1.
std::vector<double> block_flags(const arma::mat& flags, Pooling block);

}  // namespace app::render
