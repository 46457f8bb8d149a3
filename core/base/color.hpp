#pragma once

#include <algorithm>
#include <armadillo>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace core::color {

/// One color, 8 bits a channel.
struct Rgb {
  std::uint8_t r = 0, g = 0, b = 0;
  friend bool operator==(const Rgb&, const Rgb&) = default;
};

/// 0xRRGGBB as it is written in style sheets.
constexpr Rgb rgb(std::uint32_t hex) {
  return {static_cast<std::uint8_t>(hex >> 16), static_cast<std::uint8_t>(hex >> 8),
          static_cast<std::uint8_t>(hex)};
}

/// share of a, the rest b; share 0 … 1.
Rgb mix(Rgb a, Rgb b, float share);

/// Of the two number colors the one that contrasts more with the ground (relative luminance, WCAG 2).
Rgb readable_on(Rgb ground);

/// Which colors stand for numbers.
enum class ColorMap {
  weights,  ///< sequential: viridis, with 0 receding into the ground
  values,   ///< diverging around the middle: blue, orange
  mask,     ///< grey, for 0 and 1
  magma,    ///< the other sequential ones, again with 0 in the ground
  cividis,
  greys,
  red_blue  ///< the other diverging one
};

/// Whether a map has a middle for 0 and a side for each sign.
constexpr bool is_diverging(ColorMap map) {
  return map == ColorMap::values || map == ColorMap::red_blue;
}

/// A map that people can choose: its name in settings and in words.
struct NamedMap {
  ColorMap map;
  const char* name;
};
/// The sequential and the diverging maps, the usual ones first.
std::span<const NamedMap> sequential_maps();
std::span<const NamedMap> diverging_maps();

/// The colors a map goes through, evenly spaced from the low end of the range to the high one; at most 13.
std::span<const Rgb> stops(ColorMap map, bool dark);

/// The color at t of a map: 0 is the low end of the range, 1 the high end; outside it is clamped.
Rgb color_at(ColorMap map, bool dark, double t);

/// Where a number stands in low … high: 0 … 1, clamped; NaN is 0.
///
/// A range without extent is the middle of the diverging maps and the beginning of the others. In diverging
/// maps 0 is always the middle, and both signs have one measure. With least > 0 the measure is logarithmic:
/// numbers smaller than that in size stand where 0 stands, least itself a step beside it.
double place_in_range(ColorMap map, double low, double high, double number, double least = 0);

/// Red, green and blue as they are mixed, and nothing: four at once, in the compiler's own notation, take no
/// longer than one.
typedef float Channels __attribute__((vector_size(4 * sizeof(float))));

inline Channels channels(Rgb c) {
  return Channels{static_cast<float>(c.r), static_cast<float>(c.g), static_cast<float>(c.b), 0};
}

/// Red, green, blue and 0 at t between n stops, 0 the first one and 1 the last one; outside it is clamped.
template <class StopAt>
[[gnu::always_inline]] inline std::array<std::uint8_t, 4> color_among(std::size_t n, double t,
                                                                      StopAt stop_at) {
  typedef std::int32_t Whole __attribute__((vector_size(4 * sizeof(std::int32_t))));
  typedef std::uint8_t Bytes __attribute__((vector_size(4)));
  const double place = (t > 0 ? std::min(t, 1.0) : 0.0) * static_cast<double>(n - 1);
  const auto stop = std::min(static_cast<std::int32_t>(place), static_cast<std::int32_t>(n) - 2);
  const auto share = static_cast<float>(place - stop);
  const Channels mixed = (1 - share) * stop_at(static_cast<std::size_t>(stop)) +
                         share * stop_at(static_cast<std::size_t>(stop) + 1) + 0.5f;
  return std::bit_cast<std::array<std::uint8_t, 4>>(
      __builtin_convertvector(__builtin_convertvector(mixed, Whole), Bytes));
}

/// The colors of a map in one theme, at hand for many numbers.
class MapColors {
 public:
  MapColors(ColorMap map, bool dark) {
    for (const Rgb& stop : stops(map, dark)) stops_.push_back(channels(stop));
  }

  /// Red, green, blue and 0 at t: 0 is the low end of the range, 1 the high end; outside it is clamped.
  std::array<std::uint8_t, 4> operator()(double t) const {
    return color_among(stops_.size(), t, [this](std::size_t k) { return stops_[k]; });
  }

 private:
  std::vector<Channels> stops_;
};

/// The colors of a theme by role; color belongs to the data, the rest is grey.
struct Palette {
  struct Ground {
    Rgb back, panel, raised;
  };
  struct Control {
    Rgb rest, hovered, active;
  };
  struct Status {
    Rgb warning, bad, good;
  };
  struct Hatch {
    Rgb lines, ground;
  };

  bool dark = true;
  Ground ground;
  Control control;
  Rgb line, strong_line;
  Rgb text, dim, faint;
  Rgb accent, selection, selection_inner, operand;
  Status status;
  Hatch hatch;
  /// Of heads beside each other, again from the first after the last; each far from all others.
  std::array<Rgb, 32> heads;

  Rgb head(std::size_t h) const { return heads[h % heads.size()]; }
};

/// The dark or the light palette.
const Palette& palette(bool dark);

/// What is drawn beside the color of a cell, as a sum of bits; shaders/heatmap.frag names them alike.
namespace mark {
constexpr unsigned hidden = 1, dropped = 2, minus_infinity = 4, not_a_number = 8, above = 16, below = 32,
                   zero = 64;
}

/// How a cell is drawn.
struct CellLook {
  double place = 0;    ///< in the color map, 0 … 1
  unsigned marks = 0;  ///< a sum of bits
};

/// A range of numbers and its colors.
struct Shading {
  ColorMap map = ColorMap::values;
  double low = -1, high = 1;
  double least = 0;   ///< of a logarithmic range: the smallest size with a color of its own; 0 = linear
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
std::vector<double> pooled(ColorMap map, const arma::mat& numbers, Blocks rows, Blocks columns);

/// Which number of several cells that is: "largest", "number farthest from 0", "mean".
const char* pooled_as(ColorMap map);

/// The one to show of two numbers of a block; a NaN wins and stays, −∞ loses.
///
/// All comparisons are made, whatever the first ones say: so the compiler can do several numbers at once.
template <bool is_signed>
double stronger(double a, double b) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  bool keep = a >= b;
  if constexpr (is_signed) keep = ((std::abs(a) >= std::abs(b)) & (a != -infinity)) | (b == -infinity);
  return keep | (a != a) ? a : b;
}

/// Where a number stands along the color bar of a range: 0 … 1 from its low end to its high one, clamped.
double share_of_bar(const Shading& shading, double number);

/// The number that stands there; on a logarithmic bar the numbers nearest to 0 are those of the least size.
double number_on_bar(const Shading& shading, double share);

}  // namespace core::color
