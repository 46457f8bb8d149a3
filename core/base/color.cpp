#include "core/base/color.hpp"

#include <numeric>

namespace core::color {
namespace {

/// Returns a table of linear light by channel value, as heatmaps need inks for a hundred thousand cells.
std::array<double, 256> linear_lights() {
  std::array<double, 256> lights{};
  for (std::size_t i = 0; i < lights.size(); ++i) {
    const double c = static_cast<double>(i) / 255;
    lights[i] = c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  }
  return lights;
}

double luminance(Rgb c) {
  static const std::array<double, 256> lights = linear_lights();
  return 0.2126 * lights[c.r] + 0.7152 * lights[c.g] + 0.0722 * lights[c.b];
}

double contrast(Rgb a, Rgb b) {
  const double x = luminance(a), y = luminance(b);
  return (std::max(x, y) + 0.05) / (std::min(x, y) + 0.05);
}

}  // namespace

Rgb mix(Rgb a, Rgb b, float share) {
  const auto channel = [share](std::uint8_t x, std::uint8_t y) {
    return static_cast<std::uint8_t>(std::lround(share * x + (1 - share) * y));
  };
  return {channel(a.r, b.r), channel(a.g, b.g), channel(a.b, b.b)};
}

Rgb readable_on(Rgb background) {
  constexpr Rgb light = rgb(0xf6f8fa), dark = rgb(0x0c0f12);
  return contrast(light, background) > contrast(dark, background) ? light : dark;
}

namespace {

constexpr std::array weights_dark{rgb(0x1b1a2b), rgb(0x2f2152), rgb(0x443a83), rgb(0x3a538b),
                                  rgb(0x2f6c8e), rgb(0x24868e), rgb(0x1f9f88), rgb(0x3fbc73),
                                  rgb(0x7dd250), rgb(0xbfdf30), rgb(0xfde725)};
constexpr std::array weights_light{rgb(0xf6f4ea), rgb(0xe6ecb4), rgb(0xc3e07d), rgb(0x8ed26b),
                                   rgb(0x52bd79), rgb(0x27a585), rgb(0x238a8d), rgb(0x2f6c8e),
                                   rgb(0x3d4f8a), rgb(0x46327e), rgb(0x2e0f45)};
// From the most negative number through zero to the most positive one.
constexpr std::array values_dark{rgb(0x93c6f7), rgb(0x4b98dd), rgb(0x2a74b8), rgb(0x215484),
                                 rgb(0x213a55), rgb(0x22262b), rgb(0x46331f), rgb(0x774818),
                                 rgb(0xad6415), rgb(0xe0841f), rgb(0xffb866)};
constexpr std::array values_light{rgb(0x0d4679), rgb(0x17609f), rgb(0x3786c8), rgb(0x6aabde), rgb(0xa3cbec),
                                  rgb(0xd0e3f5), rgb(0xeef0f2), rgb(0xfbe0c2), rgb(0xf8c18a), rgb(0xee9b4e),
                                  rgb(0xd8741d), rgb(0xa4500a), rgb(0x7d3b05)};
// Ends fade into the background like those above; in between, Matplotlib's published maps at tenths.
constexpr std::array magma_dark{rgb(0x17161f), rgb(0x231148), rgb(0x3b0f70), rgb(0x641a80),
                                rgb(0x8c2981), rgb(0xb5367a), rgb(0xde4968), rgb(0xf66e5c),
                                rgb(0xfe9f6d), rgb(0xfece91), rgb(0xfcfdbf)};
constexpr std::array magma_light{rgb(0xf7f5ec), rgb(0xfede9f), rgb(0xfeb77e), rgb(0xfb8861),
                                 rgb(0xeb5760), rgb(0xc83e73), rgb(0x9e2f7f), rgb(0x721f81),
                                 rgb(0x4a1079), rgb(0x221150), rgb(0x0b0924)};
constexpr std::array cividis_dark{rgb(0x16202e), rgb(0x12305f), rgb(0x2a3f6d), rgb(0x434e6c),
                                  rgb(0x575d6d), rgb(0x6a6c71), rgb(0x7d7c78), rgb(0x948e77),
                                  rgb(0xada172), rgb(0xc8b866), rgb(0xfee838)};
constexpr std::array cividis_light{rgb(0xf6f4e6), rgb(0xeadb8a), rgb(0xc8b866), rgb(0xada172),
                                   rgb(0x948e77), rgb(0x7d7c78), rgb(0x6a6c71), rgb(0x575d6d),
                                   rgb(0x434e6c), rgb(0x2a3f6d), rgb(0x00224e)};
constexpr std::array grays_dark{rgb(0x1b1e22), rgb(0xf4f6f8)};
constexpr std::array grays_light{rgb(0xf4f5f7), rgb(0x14171a)};
// After ColorBrewer's RdBu: red is negative, as the name suggests.
constexpr std::array red_blue_dark{rgb(0xffb3a0), rgb(0xee7a62), rgb(0xcf4a43), rgb(0x98303a),
                                   rgb(0x55282f), rgb(0x22262b), rgb(0x223a52), rgb(0x245a85),
                                   rgb(0x3480b8), rgb(0x67a9d6), rgb(0xabd3ef)};
constexpr std::array red_blue_light{rgb(0x67001f), rgb(0xb2182b), rgb(0xd6604d), rgb(0xf4a582),
                                    rgb(0xfddbc7), rgb(0xf1f1f1), rgb(0xd1e5f0), rgb(0x92c5de),
                                    rgb(0x4393c3), rgb(0x2166ac), rgb(0x053061)};
constexpr std::array mask_dark{rgb(0x1b1e22), rgb(0x59626d)};
constexpr std::array mask_light{rgb(0xf1f2f4), rgb(0xaab3bd)};

constexpr std::array sequential{NamedMap{ColorMap::weights, "viridis"}, NamedMap{ColorMap::magma, "magma"},
                                NamedMap{ColorMap::cividis, "cividis"}, NamedMap{ColorMap::grays, "greys"}};
constexpr std::array diverging{NamedMap{ColorMap::values, "blue-orange"},
                               NamedMap{ColorMap::red_blue, "red-blue"}};

constexpr double first_step = 0.08;  // from 0 to the smallest number of a logarithmic range

/// Returns the place of a magnitude between 0 and the largest, 0 … 1.
double share_of(double size, double largest, double least) {
  if (least > 0) {
    if (size < least) return 0;
    if (!(largest > least)) return 1;
    return first_step + (1 - first_step) * std::log(size / least) / std::log(largest / least);
  }
  return size / largest;
}

/// Returns the place with 0 in the middle and one scale for both signs; a range on one side of 0 uses only
/// that half of the map.
double place_around_zero(double low, double high, double number, double least) {
  const double largest = std::max(std::abs(low), std::abs(high));
  if (low < 0 && high > 0)
    return 0.5 + std::copysign(0.5, number) * share_of(std::abs(number), largest, least);
  const double nearest = least > 0 ? 0 : std::min(std::abs(low), std::abs(high));
  const double sign = low < 0 ? -0.5 : 0.5;
  return 0.5 + sign * share_of(std::abs(number) - nearest, largest - nearest, least);
}

}  // namespace

std::span<const Rgb> stops(ColorMap map, bool dark) {
  switch (map) {
    case ColorMap::weights:
      return dark ? std::span<const Rgb>(weights_dark) : weights_light;
    case ColorMap::values:
      return dark ? std::span<const Rgb>(values_dark) : values_light;
    case ColorMap::magma:
      return dark ? std::span<const Rgb>(magma_dark) : magma_light;
    case ColorMap::cividis:
      return dark ? std::span<const Rgb>(cividis_dark) : cividis_light;
    case ColorMap::grays:
      return dark ? std::span<const Rgb>(grays_dark) : grays_light;
    case ColorMap::red_blue:
      return dark ? std::span<const Rgb>(red_blue_dark) : red_blue_light;
    case ColorMap::mask:
      break;
  }
  return dark ? mask_dark : mask_light;
}

std::span<const NamedMap> sequential_maps() {
  return sequential;
}
std::span<const NamedMap> diverging_maps() {
  return diverging;
}

Rgb color_at(ColorMap map, bool dark, double t) {
  const std::span<const Rgb> all = stops(map, dark);
  const auto [r, g, b, nothing] =
      interpolate_stops(all.size(), t, [all](std::size_t k) { return channels(all[k]); });
  return {r, g, b};
}

double position_in_range(ColorMap map, double low, double high, double number, double least) {
  if (std::isnan(number)) return 0;
  const bool diverging = is_diverging(map);
  if (!(high > low)) return number < low ? 0 : number > high ? 1 : diverging ? 0.5 : 0.0;
  number = std::clamp(number, low, high);
  if (diverging) return std::clamp(place_around_zero(low, high, number, least), 0.0, 1.0);
  if (least > 0) return std::clamp(share_of(std::max(number, 0.0), high, least), 0.0, 1.0);
  // Halved, so that high − low cannot overflow.
  return std::clamp((number / 2 - low / 2) / (high / 2 - low / 2), 0.0, 1.0);
}

namespace {

Palette dark_palette() {
  Palette p;
  p.dark = true;
  p.background.back = rgb(0x121417), p.background.panel = rgb(0x191c20), p.background.raised = rgb(0x1f2328);
  p.control.rest = rgb(0x262b31), p.control.hovered = rgb(0x30363d), p.control.active = rgb(0x3a414a);
  p.line = rgb(0x2a2f35), p.strong_line = rgb(0x3a4149);
  p.text = rgb(0xdfe3e7), p.dim = rgb(0x99a1aa), p.faint = rgb(0x747d87);
  p.accent = rgb(0x8fb4d6), p.selection = rgb(0xffffff), p.selection_inner = rgb(0x000000),
  p.operand = rgb(0xff82b8);
  p.status.warning = rgb(0xf0c24b), p.status.bad = rgb(0xff7a6e), p.status.good = rgb(0x8fcf9a);
  p.hatch.lines = rgb(0x4a515a), p.hatch.background = rgb(0x191c20);
  p.heads = {rgb(0xe8a33d), rgb(0x5ab4ea), rgb(0x35c293), rgb(0xe9dc5a), rgb(0xe3714a), rgb(0xd487b8),
             rgb(0x9f92f3), rgb(0xb3bac2), rgb(0x546c0c), rgb(0xe4006c), rgb(0xa824a8), rgb(0x90fc78),
             rgb(0x846048), rgb(0x246c6c), rgb(0xd8f0b4), rgb(0x3cf0fc), rgb(0x0c9000), rgb(0xfcc09c),
             rgb(0x546090), rgb(0xa83c54), rgb(0x3060e4), rgb(0xfc90fc), rgb(0xcc0c30), rgb(0x849c6c),
             rgb(0x905400), rgb(0x00fca8), rgb(0x84a800), rgb(0x00783c), rgb(0xe454a8), rgb(0xfc8490),
             rgb(0x904890), rgb(0x84546c)};
  return p;
}

Palette light_palette() {
  Palette p;
  p.dark = false;
  p.background.back = rgb(0xffffff), p.background.panel = rgb(0xf4f5f7), p.background.raised = rgb(0xebedf0);
  p.control.rest = rgb(0xe4e7eb), p.control.hovered = rgb(0xd8dce2), p.control.active = rgb(0xc9cfd7);
  p.line = rgb(0xdadee3), p.strong_line = rgb(0xc0c6ce);
  p.text = rgb(0x1c2127), p.dim = rgb(0x5a636e), p.faint = rgb(0x767f89);
  p.accent = rgb(0x2f6699), p.selection = rgb(0x0a0d10), p.selection_inner = rgb(0xffffff),
  p.operand = rgb(0xc2136b);
  p.status.warning = rgb(0x8a6100), p.status.bad = rgb(0xb3261e), p.status.good = rgb(0x256b35);
  p.hatch.lines = rgb(0xb4bac2), p.hatch.background = rgb(0xf4f5f7);
  p.heads = {rgb(0xb06a00), rgb(0x1f78b4), rgb(0x0f8f66), rgb(0x8a7a00), rgb(0xc04a1c), rgb(0xb0467f),
             rgb(0x6a58c8), rgb(0x5f6873), rgb(0x480c00), rgb(0x3c9c0c), rgb(0x183000), rgb(0x241848),
             rgb(0xe40c54), rgb(0xc0846c), rgb(0xe460d8), rgb(0x0c0078), rgb(0x189ca8), rgb(0xa884c0),
             rgb(0x002430), rgb(0x849060), rgb(0x780078), rgb(0xfc3c9c), rgb(0x246000), rgb(0x900c30),
             rgb(0x6c4818), rgb(0x3c90fc), rgb(0x540030), rgb(0xe46c78), rgb(0x005448), rgb(0x844854),
             rgb(0x789c3c), rgb(0x3c3024)};
  return p;
}

}  // namespace

const Palette& palette(bool dark) {
  static const Palette dark_one = dark_palette(), light_one = light_palette();
  return dark ? dark_one : light_one;
}

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

template <bool is_signed>
std::vector<double> strongest_of(const arma::mat& m, BlockRange rows, BlockRange columns) {
  const std::size_t n_rows = rows.end - rows.begin, n_columns = columns.end - columns.begin;
  const std::size_t first = rows.begin * rows.size,
                    last = std::min<std::size_t>(rows.end * rows.size, m.n_rows);
  std::vector<double> result(n_rows * n_columns), column(last - first);
  for (std::size_t c = 0; c < n_columns; ++c) {
    const std::size_t begin = (columns.begin + c) * columns.size;
    const std::size_t end = std::min<std::size_t>(begin + columns.size, m.n_cols);
    std::copy_n(m.colptr(begin) + first, column.size(), column.begin());
    for (std::size_t j = begin + 1; j < end; ++j) {
      const double* numbers = m.colptr(j) + first;
      for (std::size_t i = 0; i < column.size(); ++i) column[i] = stronger<is_signed>(column[i], numbers[i]);
    }
    for (std::size_t r = 0; r < n_rows; ++r) {
      const std::size_t top = r * rows.size, bottom = std::min(top + rows.size, column.size());
      double best = column[top];
      for (std::size_t i = top + 1; i < bottom; ++i) best = stronger<is_signed>(best, column[i]);
      result[r * n_columns + c] = best;
    }
  }
  return result;
}

std::vector<double> means_of(const arma::mat& m, BlockRange rows, BlockRange columns) {
  std::vector<double> result;
  for (std::size_t r = rows.begin; r < rows.end; ++r)
    for (std::size_t c = columns.begin; c < columns.end; ++c) {
      const std::size_t top = r * rows.size, bottom = std::min<std::size_t>(top + rows.size, m.n_rows);
      const std::size_t left = c * columns.size, right = std::min<std::size_t>(left + columns.size, m.n_cols);
      double sum = 0;
      for (std::size_t j = left; j < right; ++j)
        sum = std::accumulate(m.colptr(j) + top, m.colptr(j) + bottom, sum);
      result.push_back(sum / static_cast<double>((bottom - top) * (right - left)));
    }
  return result;
}

bool is_logarithmic(const Shading& s) {
  return s.least > 0 && s.map != ColorMap::mask;
}

/// Returns the place of a magnitude between the least and the largest, on a logarithmic scale.
double logarithmic(double size, double largest, double least) {
  if (!(size > least)) return 0;
  return largest > least ? std::log(size / least) / std::log(largest / least) : 1;
}

bool has_two_sides(const Shading& s) {
  return is_diverging(s.map) && s.low < 0 && s.high > 0;
}

double largest_of(const Shading& s) {
  return std::max(std::abs(s.low), std::abs(s.high));
}

}  // namespace

CellStyle cell_style(const Shading& s, double number, bool masked, bool dropped) {
  if (std::isnan(number)) return {0, mark::not_a_number};
  if (number == -infinity) return {0, mark::minus_infinity};
  // A number other than 0 counts, even if its cell is masked.
  unsigned marks = masked && number == 0 ? mark::masked : dropped ? mark::dropped : 0;
  if (number > s.high) marks |= mark::above;
  if (number < s.low || (number != 0 && std::abs(number) < s.least)) marks |= mark::below;
  if (s.dots && number == 0 && marks == 0) marks |= mark::zero;
  if (number == infinity) marks |= mark::masked;
  return {position_in_range(s.map, s.low, s.high, number, s.least), marks};
}

std::vector<double> pooled(ColorMap map, const arma::mat& numbers, BlockRange rows, BlockRange columns) {
  if (map == ColorMap::mask) return means_of(numbers, rows, columns);
  return is_diverging(map) ? strongest_of<true>(numbers, rows, columns)
                           : strongest_of<false>(numbers, rows, columns);
}

const char* pooling_label(ColorMap map) {
  return map == ColorMap::mask ? "mean" : is_diverging(map) ? "number farthest from 0" : "largest";
}

double bar_fraction(const Shading& s, double number) {
  if (!(s.high > s.low) || std::isnan(number)) return 0.5;
  const double v = std::clamp(number, s.low, s.high);
  // Halved, so that high − low cannot overflow.
  if (!is_logarithmic(s)) return (v / 2 - s.low / 2) / (s.high / 2 - s.low / 2);
  const double along = logarithmic(std::abs(v), largest_of(s), s.least);
  if (has_two_sides(s)) return 0.5 + std::copysign(0.5, v) * along;
  return s.high > 0 ? along : 1 - along;
}

double number_at_bar_fraction(const Shading& s, double share) {
  if (!is_logarithmic(s)) return s.low + (s.high - s.low) * share;
  const auto size = [&](double along) { return s.least * std::pow(largest_of(s) / s.least, along); };
  if (has_two_sides(s)) return share < 0.5 ? -size(1 - 2 * share) : size(2 * share - 1);
  return s.high > 0 ? size(share) : -size(1 - share);
}

}  // namespace core::color
