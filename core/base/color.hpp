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

/// One color, 8 bits per channel.
struct Rgb {
  std::uint8_t r = 0, g = 0, b = 0;
  friend bool operator==(const Rgb&, const Rgb&) = default;
};

/// Returns the color 0xRRGGBB, as written in style sheets.
constexpr Rgb rgb(std::uint32_t hex) {
  return {static_cast<std::uint8_t>(hex >> 16), static_cast<std::uint8_t>(hex >> 8),
          static_cast<std::uint8_t>(hex)};
}

/// Returns share · a + (1 − share) · b; share 0 … 1.
Rgb mix(Rgb a, Rgb b, float share);

/// Returns the number color, light or dark, with more contrast to the ground (relative luminance, WCAG 2).
Rgb readable_on(Rgb background);

/// Color maps for numbers.
enum class ColorMap {
  weights,  ///< sequential: viridis, with 0 fading into the background
  values,   ///< diverging around the middle: blue, orange
  mask,     ///< gray, for 0 and 1
  magma,    ///< more sequential maps, with 0 fading into the background
  cividis,
  grays,
  red_blue  ///< the other diverging map
};

/// Returns whether a map has 0 in the middle and a side for each sign.
constexpr bool is_diverging(ColorMap map) {
  return map == ColorMap::values || map == ColorMap::red_blue;
}

/// Map that users can choose, and its name in settings and labels.
struct NamedMap {
  ColorMap map;
  const char* name;
};
/// Returns the sequential or the diverging maps, defaults first.
std::span<const NamedMap> sequential_maps();
std::span<const NamedMap> diverging_maps();

/// Returns the colors of a map, evenly spaced from the low end of the range to the high end; at most 13.
std::span<const Rgb> stops(ColorMap map, bool dark);

/// Returns the color at t of a map: 0 is the low end of the range, 1 the high end; t is clamped.
Rgb color_at(ColorMap map, bool dark, double t);

/// Returns the place of a number in low … high: 0 … 1, clamped; NaN is 0.
///
/// An empty range is the middle of diverging maps and the start of the others. In diverging maps 0 is always
/// the middle, with one scale for both signs. With least > 0 the scale is logarithmic: smaller magnitudes are
/// placed at 0, `least` itself one step away.
double position_in_range(ColorMap map, double low, double high, double number, double least = 0);

/// Red, green, blue and an unused number as a compiler vector: computing four takes no longer than one.
typedef float Channels __attribute__((vector_size(4 * sizeof(float))));

inline Channels channels(Rgb c) {
  return Channels{static_cast<float>(c.r), static_cast<float>(c.g), static_cast<float>(c.b), 0};
}

/// Returns red, green, blue and 0 at t between n stops: 0 is the first, 1 the last; t is clamped.
template <class StopAt>
[[gnu::always_inline]] inline std::array<std::uint8_t, 4> interpolate_stops(std::size_t n, double t,
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

/// Colors of a map in one theme, prepared for coloring many numbers.
class MapColors {
 public:
  MapColors(ColorMap map, bool dark) {
    for (const Rgb& stop : stops(map, dark)) stops_.push_back(channels(stop));
  }

  /// Returns red, green, blue and 0 at t: 0 is the low end of the range, 1 the high end; t is clamped.
  std::array<std::uint8_t, 4> operator()(double t) const {
    return interpolate_stops(stops_.size(), t, [this](std::size_t k) { return stops_[k]; });
  }

 private:
  std::vector<Channels> stops_;
};

/// Colors of a theme by role; only data is colored, the rest is gray.
struct Palette {
  struct Background {
    Rgb back, panel, raised;
  };
  struct Control {
    Rgb rest, hovered, active;
  };
  struct Status {
    Rgb warning, bad, good;
  };
  struct Hatch {
    Rgb lines, background;
  };

  bool dark = true;
  Background background;
  Control control;
  Rgb line, strong_line;
  Rgb text, dim, faint;
  Rgb accent, selection, selection_inner, operand;
  Status status;
  Hatch hatch;
  /// Colors of heads, reused from the first after the last; each far from all others.
  std::array<Rgb, 32> heads;

  Rgb head(std::size_t h) const { return heads[h % heads.size()]; }
};

/// Returns the dark or the light palette.
const Palette& palette(bool dark);

/// Marks drawn on a cell besides its color, as a sum of bits.
namespace mark {
constexpr unsigned masked = 1, dropped = 2, minus_infinity = 4, not_a_number = 8, above = 16, below = 32,
                   zero = 64;
}

/// How a cell is drawn.
struct CellStyle {
  double place = 0;    ///< in the color map, 0 … 1
  unsigned marks = 0;  ///< a sum of bits
};

/// A range of numbers and its colors.
struct Shading {
  ColorMap map = ColorMap::values;
  double low = -1, high = 1;
  double least = 0;   ///< smallest magnitude with a color of its own, in a logarithmic range; 0 = linear
  bool dots = false;  ///< exact zeros are marked
};

/// Returns the look of a number in a range. Only a masked 0 is marked as hidden, as other numbers count; ∞ is
/// above any range and hatched too; magnitudes under `least` are below the range.
CellStyle cell_style(const Shading& shading, double number, bool masked, bool dropped);

/// Rows or columns of a matrix in blocks of `size`; the last block may be smaller.
struct BlockRange {
  std::size_t begin = 0, end = 0, size = 1;
};

/// Returns the number that represents each block, row-major.
///
/// The largest number (in diverging maps the one farthest from 0), NaN if the block has one, and −∞ only if
/// it has nothing else. For a mask the mean: a block of a random mask nearly always keeps something.
std::vector<double> pooled(ColorMap map, const arma::mat& numbers, BlockRange rows, BlockRange columns);

/// Returns which number represents several cells: "largest", "number farthest from 0", "mean".
const char* pooling_label(ColorMap map);

/// Returns the one of two numbers that represents them; NaN always wins, −∞ loses.
///
/// All comparisons are evaluated, so that the compiler can vectorize.
template <bool is_signed>
double stronger(double a, double b) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  bool keep = a >= b;
  if constexpr (is_signed) keep = ((std::abs(a) >= std::abs(b)) & (a != -infinity)) | (b == -infinity);
  return keep | (a != a) ? a : b;
}

/// Returns the place of a number along the color bar of a range: 0 … 1 from low to high, clamped.
double bar_fraction(const Shading& shading, double number);

/// Returns the number at that place; on a logarithmic bar those nearest to 0 have the magnitude `least`.
double number_at_bar_fraction(const Shading& shading, double share);

}  // namespace core::color
