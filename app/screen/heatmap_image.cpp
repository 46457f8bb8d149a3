#include "app/screen/heatmap_image.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

// Compiled for the vectors of each processor, without fast-math options, as NaN and −∞ matter.
// The thread sanitizer's runtime starts after the loader has selected a clone, and crashes.
#if defined(__SANITIZE_THREAD__) || !defined(__x86_64__)
#define FOR_EACH_PROCESSOR
#else
#define FOR_EACH_PROCESSOR __attribute__((target_clones("avx512f", "avx2", "default")))
#endif

namespace app::render {
namespace {

namespace mark = core::color::mark;
using core::color::stronger;

std::size_t blocks(std::size_t cells, std::size_t block) {
  return (cells + block - 1) / block;
}

std::size_t cells_per_pixel(double cells, int pixels) {
  if (!(cells > 0) || pixels <= 0) return 1;
  return std::max<std::size_t>(1, static_cast<std::size_t>(std::ceil(cells / pixels)));
}

/// Returns the blocks of a matrix's rows or columns that the span from … to touches.
core::color::BlockRange touched(double from, double to, std::size_t cells, std::size_t block) {
  const auto size = static_cast<double>(block);
  const auto count = static_cast<double>(blocks(cells, block));
  const auto begin = static_cast<std::size_t>(std::clamp(std::floor(from / size), 0.0, count));
  return {begin, std::max(begin, static_cast<std::size_t>(std::clamp(std::ceil(to / size), 0.0, count))),
          block};
}

/// Computes the strongest number of every block of a line. Compares all blocks' first numbers, then their
/// second ones and so on, because gcc vectorizes this order, but not a running maximum per block.
template <bool is_signed, std::size_t fixed_block>
[[gnu::always_inline]] inline void strongest_along(const double* __restrict line, std::size_t n,
                                                   std::size_t block, double* __restrict out) {
  if constexpr (fixed_block > 0) block = fixed_block;
  const std::size_t whole = n / block;
  for (std::size_t c = 0; c < whole; ++c) out[c] = line[c * block];
  for (std::size_t k = 1; k < block; ++k)
    for (std::size_t c = 0; c < whole; ++c) out[c] = stronger<is_signed>(out[c], line[c * block + k]);
  if (whole * block == n) return;
  double best = line[whole * block];
  for (std::size_t i = whole * block + 1; i < n; ++i) best = stronger<is_signed>(best, line[i]);
  out[whole] = best;
}

template <bool is_signed>
[[gnu::always_inline]] inline void strongest_of_blocks(const double* line, std::size_t n, std::size_t block,
                                                       double* out) {
  switch (block) {
    case 1:
      std::copy_n(line, n, out);
      return;
    case 2:
      return strongest_along<is_signed, 2>(line, n, block, out);
    case 3:
      return strongest_along<is_signed, 3>(line, n, block, out);
    case 4:
      return strongest_along<is_signed, 4>(line, n, block, out);
    default:
      return strongest_along<is_signed, 0>(line, n, block, out);
  }
}

FOR_EACH_PROCESSOR void largest_of_blocks(const double* line, std::size_t n, std::size_t block, double* out) {
  strongest_of_blocks<false>(line, n, block, out);
}
FOR_EACH_PROCESSOR void farthest_of_blocks(const double* line, std::size_t n, std::size_t block,
                                           double* out) {
  strongest_of_blocks<true>(line, n, block, out);
}

/// Computes the strongest of some lines, each minus its shift.
template <bool is_signed>
void strongest_down(const double* lines, std::size_t stride, const std::vector<double>& shifts, std::size_t n,
                    double* out) {
  for (std::size_t i = 0; i < shifts.size(); ++i, lines += stride)
    for (std::size_t c = 0; c < n; ++c)
      out[c] = i == 0 ? lines[c] - shifts[0] : stronger<is_signed>(out[c], lines[c] - shifts[i]);
}

/// Returns a key: equal for pictures of the same memory that are pooled in the same way.
auto source_key(const HeatmapPicture& p) {
  const bool by_rows = has_rows(p);
  return std::tuple(p.cells.numbers, p.cells.rows.numbers, p.cells.rows.float32_numbers, p.cells.rows.sums,
                    p.cells.rows.n_rows, p.cells.rows.n_cols, is_diverging(p.map),
                    !by_rows && p.map == ColorMap::mask);
}
auto part_key(const HeatmapPicture& p) {
  return std::tie(p.width, p.height, p.part.left, p.part.top, p.part.right, p.part.bottom);
}
/// Returns a key of everything that determines the pixels, except numbers, flags and part.
auto look_key(const HeatmapPicture& p) {
  return std::tie(p.map, p.dark, p.low, p.high, p.least, p.dots, p.gaps, p.phase);
}

/// Returns the change from the previous version, or nullptr if unknown.
const HeadChange* known_change(const HeatmapPicture& before, const HeatmapPicture& now) {
  const HeadChange* change = now.cells.change;
  const bool is_next = before.cells.version + 1 == now.cells.version;
  return change && !change->all && is_next && has_rows(now) ? change : nullptr;
}

}  // namespace

Pooling pooling(const HeatmapPicture& p) {
  return {cells_per_pixel(p.part.bottom - p.part.top, p.height),
          cells_per_pixel(p.part.right - p.part.left, p.width)};
}

bool has_rows(const HeatmapPicture& p) {
  return p.cells.rows && p.width > 0 && p.height > 0 && p.part.left == 0 && p.part.top == 0 &&
         p.part.right == static_cast<double>(p.cells.rows.n_cols) &&
         p.part.bottom == static_cast<double>(p.cells.rows.n_rows);
}

PooledMatrix::FlagsKey PooledMatrix::flags_key(const HeatmapPicture& p) {
  return {p.cells.visible, p.cells.kept, has_rows(p) ? p.cells.flags_version : p.cells.version};
}

bool PooledMatrix::has_cells_of(const HeatmapPicture& p) const {
  return picture_ && source_key(*picture_) == source_key(p) && picture_->cells.version == p.cells.version;
}

bool PooledMatrix::can_update_to(const HeatmapPicture& p) const {
  return picture_ && source_key(*picture_) == source_key(p) && part_key(*picture_) == part_key(p) &&
         (picture_->cells.version == p.cells.version || known_change(*picture_, p));
}

bool PooledMatrix::is_whole() const {
  return picture_ && n_read_ == (has_rows(*picture_) ? picture_->cells.rows.n_rows : n_columns());
}

bool PooledMatrix::is_up_to_date(const HeatmapPicture& p) const {
  return has_cells_of(p) && part_key(*picture_) == part_key(p) && is_whole() && flags_of_ == flags_key(p);
}

void PooledMatrix::begin(const HeatmapPicture& p) {
  picture_ = p;
  n_read_ = 0;
  flags_of_.reset();
  const bool by_rows = has_rows(p);
  const arma::mat* m = p.cells.numbers;
  const std::size_t m_rows = by_rows ? p.cells.rows.n_rows : m ? m->n_rows : 0;
  const std::size_t m_columns = by_rows ? p.cells.rows.n_cols : m ? m->n_cols : 0;
  const Pooling size = pooling(p);
  rows_ = touched(p.part.top, p.part.bottom, m_rows, size.rows);
  columns_ = touched(p.part.left, p.part.right, m_columns, size.columns);
  if (p.width <= 0 || p.height <= 0 || n_rows() == 0) columns_.end = columns_.begin;
  pooled_rows_.resize(by_rows ? m_rows * n_columns() : 0);
  numbers_.resize(n_rows() * n_columns());
  mark_all_changed();
}

bool PooledMatrix::read(const HeatmapPicture& p, double cells, core::ThreadPool& threads) {
  if (has_rows(p))
    read_rows(p, cells, threads);
  else
    read_matrix(p, cells, threads);
  picture_ = p;
  if (!is_whole()) return false;
  if (flags_of_ != flags_key(p)) read_flags(p, threads);
  return true;
}

/// Pools the logarithms of weights, so that few exponentials are needed. Stores the pooled scores of each
/// row, as an edit changes most rows only by their sums.
void PooledMatrix::read_rows(const HeatmapPicture& p, double cells, core::ThreadPool& threads) {
  constexpr std::size_t rows_per_task = 16;  // of blocks
  const RowView& m = p.cells.rows;
  const std::size_t n = n_columns(), height = rows_.size, width = columns_.size;
  std::vector<bool> is_new(m.n_rows), writes(n_rows());
  std::optional<std::size_t> column;  // of blocks
  if (picture_->cells.version != p.cells.version) {
    const HeadChange& change = *known_change(*picture_, p);
    for (const std::size_t row : change.rows) is_new[row] = writes[row / height] = true;
    for (std::size_t r = std::min(change.first_changed_sum, m.n_rows) / height; r < n_rows(); ++r)
      writes[r] = true;
    if (change.column) column = *change.column / width;
  }
  const double rows_in_budget =
      std::min(cells / static_cast<double>(m.n_cols), static_cast<double>(m.n_rows));
  const std::size_t blocks_in_budget =
      std::max<std::size_t>(1, blocks(static_cast<std::size_t>(rows_in_budget), height));
  const std::size_t end = std::min(m.n_rows, n_read_ + blocks_in_budget * height);
  for (; n_read_ < end; ++n_read_) is_new[n_read_] = writes[n_read_ / height] = true;

  const auto pool_row = [&, pool = is_diverging(p.map) ? farthest_of_blocks : largest_of_blocks](
                            std::size_t row, std::size_t first, std::size_t last) {
    const std::size_t begin = first * width, count = std::min(last * width, m.n_cols) - begin;
    std::vector<double> widened;
    pool(m.read(row, begin, count, widened), count, width, pooled_rows_.data() + row * n + first);
  };
  const auto read_blocks = [&](std::size_t r) {
    const std::size_t begin = r * height, count = std::min(height, end - begin);
    for (std::size_t i = begin; i < begin + count; ++i) {
      if (is_new[i])
        pool_row(i, 0, n);
      else if (column)
        pool_row(i, *column, *column + 1);
    }
    if (!writes[r] && !column) return;
    std::vector<double> shifts(count);
    for (std::size_t i = 0; i < count && m.sums; ++i)
      shifts[i] = m.largest[begin + i] + std::log(m.sums[begin + i]);
    const std::size_t first = writes[r] ? 0 : *column, n_written = writes[r] ? n : 1;
    double* out = numbers_.data() + r * n + first;
    (is_diverging(p.map)
         ? strongest_down<true>
         : strongest_down<false>)(pooled_rows_.data() + begin * n + first, n, shifts, n_written, out);
    if (m.sums) m.exponentials(out, n_written);
  };
  const std::size_t n_read = blocks(end, height);
  threads.run(blocks(n_read, rows_per_task), [&](std::size_t task) {
    for (std::size_t r = task * rows_per_task; r < std::min((task + 1) * rows_per_task, n_read); ++r)
      read_blocks(r);
  });
  for (std::size_t r = 0; r < n_read; ++r)
    if (writes[r] || column) changed_[r] = has_changed_ = true;
}

/// Reads by columns; with the flags this takes about twice as long as reading by rows.
void PooledMatrix::read_matrix(const HeatmapPicture& p, double cells, core::ThreadPool& threads) {
  constexpr std::size_t columns_per_task = 16;
  const double cells_per_column = static_cast<double>(n_rows() * rows_.size * columns_.size);
  const double left = static_cast<double>(n_columns() - n_read_);
  const std::size_t first = n_read_;
  n_read_ += static_cast<std::size_t>(
      std::clamp(cells / 2 / std::max(1.0, cells_per_column), std::min(1.0, left), left));
  threads.run(blocks(n_read_ - first, columns_per_task), [&](std::size_t task) {
    const std::size_t begin = first + task * columns_per_task,
                      end = std::min(begin + columns_per_task, n_read_);
    const std::vector<double> pooled = core::color::pooled(
        p.map, *p.cells.numbers, rows_, {columns_.begin + begin, columns_.begin + end, columns_.size});
    for (std::size_t r = 0; r < n_rows(); ++r)
      std::copy_n(pooled.data() + r * (end - begin), end - begin, numbers_.data() + r * n_columns() + begin);
  });
}

/// Reads the flags; for most blocks the first cell is enough.
void PooledMatrix::read_flags(const HeatmapPicture& p, core::ThreadPool& threads) {
  flags_of_ = flags_key(p);
  flags_.assign(p.cells.visible || p.cells.kept ? numbers_.size() : 0, 0);
  mark_all_changed();
  if (flags_.empty()) return;
  const auto has_any = [this](const arma::mat& flags, std::size_t r, std::size_t c) {
    const std::size_t top = (rows_.begin + r) * rows_.size, left = (columns_.begin + c) * columns_.size;
    const std::size_t bottom = std::min<std::size_t>(top + rows_.size, flags.n_rows),
                      right = std::min<std::size_t>(left + columns_.size, flags.n_cols);
    for (std::size_t j = left; j < right; ++j)
      for (std::size_t i = top; i < bottom; ++i)
        if (flags.at(i, j) != 0) return true;
    return false;
  };
  threads.run(n_rows(), numbers_.size() * rows_.size * columns_.size, [&](std::size_t r) {
    for (std::size_t c = 0; c < n_columns(); ++c) {
      std::uint8_t& sum = flags_[r * n_columns() + c];
      if (p.cells.visible && !has_any(*p.cells.visible, r, c)) sum |= masked;
      if (p.cells.kept && !has_any(*p.cells.kept, r, c)) sum |= dropped;
    }
  });
}

std::vector<bool> PooledMatrix::take_changed() {
  has_changed_ = false;
  return std::exchange(changed_, std::vector<bool>(n_rows(), false));
}

void PooledMatrix::mark_all_changed() {
  changed_.assign(n_rows(), true);
  has_changed_ = true;
}

// --- From numbers to pixels ---

namespace {

constexpr std::size_t tile = 16;  // pixels across and down with one version
constexpr double min_cell_with_gap = 8;

constexpr std::uint32_t rgba(Rgb c) {
  return c.r | static_cast<std::uint32_t>(c.g) << 8 | static_cast<std::uint32_t>(c.b) << 16 | 0xff000000u;
}

/// Mixes two colors; share is that of b, 0 … 1.
std::uint32_t blended(std::uint32_t a, std::uint32_t b, float share) {
  const auto of_b = static_cast<std::uint32_t>(256 * share + 0.5f), of_a = 256 - of_b;
  const std::uint32_t red_blue = ((a & 0xff00ffu) * of_a + (b & 0xff00ffu) * of_b + 0x800080u) >> 8;
  const std::uint32_t green = ((a & 0xff00u) * of_a + (b & 0xff00u) * of_b + 0x8000u) >> 8;
  return (red_blue & 0xff00ffu) | (green & 0xff00u) | 0xff000000u;
}

/// Computes the indices of numbers in a table of colors; returns whether all are in the range.
FOR_EACH_PROCESSOR bool find_color_indices(const double* numbers, std::size_t n, double slope, double first,
                                           double low, double high, double last_index,
                                           std::uint32_t* color_indices) {
  std::uint64_t within = ~std::uint64_t{0};
  for (std::size_t i = 0; i < n; ++i) {
    double at = (numbers[i] - low) * slope + first;
    at = at > 0 ? at : 0;  // NaN too
    at = at < 1 ? at : 1;
    color_indices[i] = static_cast<std::uint32_t>(static_cast<std::int32_t>(at * last_index + 0.5));
    within &= std::uint64_t{0} - static_cast<std::uint64_t>((numbers[i] >= low) & (numbers[i] <= high));
  }
  return within != 0;
}

FOR_EACH_PROCESSOR void look_up(const std::uint32_t* table, const std::uint32_t* color_indices, std::size_t n,
                                std::uint32_t* out) {
  for (std::size_t i = 0; i < n; ++i) out[i] = table[color_indices[i]];
}

/// Takes the other pixels where the mask is set.
FOR_EACH_PROCESSOR void select_pixels(const std::uint32_t* pixels, const std::uint32_t* others,
                                      const std::uint32_t* mask, std::size_t n, std::uint32_t* out) {
  for (std::size_t x = 0; x < n; ++x) out[x] = (pixels[x] & ~mask[x]) | (others[x] & mask[x]);
}

/// Returns the covered share of a pixel, from the signed distance of its center to an edge.
float coverage(float distance) {
  return std::clamp(0.5f - distance, 0.0f, 1.0f);
}

/// Marks of a cell of this size at a display's scale; x and y are points in it. All are in pixels.
struct CellMarks {
  float w, h, scale;

  float min_side() const { return std::min(w, h); }
  float nan_cross(float x, float y) const {
    const float length = std::hypot(w, h), across = w / length, down = h / length;
    const float qx = x - w / 2, qy = y - h / 2;
    return coverage(std::min(std::abs(qx * down - qy * across), std::abs(qx * down + qy * across)) -
                    0.6f * scale);
  }
  float dropped(float x, float y) const {
    const float qx = x - std::floor(w / 2), qy = y - std::floor(h / 2);
    // Too small for a cross: half of one, fainter as there may be thousands.
    if (min_side() < 14 * scale) return min_side() < 2 ? 0 : 0.45f * coverage(std::abs(qx - qy) - 0.4f);
    const float line = std::min(std::abs(qx - qy), std::abs(qx + qy)) / std::sqrt(2.0f) - 0.75f * scale;
    return coverage(std::max(line, std::max(std::abs(qx), std::abs(qy)) - 4 * scale));
  }
  float cut_corner(float x, float y, bool is_top) const {
    if (min_side() < 2) return 0;
    const float side = std::clamp(0.45f * min_side(), 1.5f, 9 * scale);
    const float from_corner = (w - x) + (is_top ? y : h - y);
    // There may be thousands of very small cells, so their colors must stay visible.
    return (min_side() < 5 ? 0.35f : 1.0f) * coverage((from_corner - side) / std::sqrt(2.0f));
  }
  /// Dot for an exact zero in a cell without a number.
  float zero_dot(float x, float y) const {
    if (min_side() < 4) return 0;
    return 0.55f *
           coverage(std::hypot(x - w / 2, y - h / 2) - std::clamp(0.12f * min_side(), 0.7f, 2 * scale));
  }
};

bool same_look(const HeatmapPicture& a, const HeatmapPicture& b) {
  return part_key(a) == part_key(b) && look_key(a) == look_key(b);
}

}  // namespace

/// Conversion of numbers to colors, for one picture.
struct HeatmapImage::ColorTable {
  static constexpr std::size_t n_colors = 4096;

  explicit ColorTable(const HeatmapPicture& p, float display_scale)
      : shading{p.map, p.low, p.high, p.least, p.dots}, scale(display_scale), colors(n_colors) {
    const core::color::MapColors map(p.map, p.dark);
    for (std::size_t k = 0; k < n_colors; ++k) {
      const auto [r, g, b, nothing] = map(static_cast<double>(k) / (n_colors - 1));
      colors[k] = rgba({r, g, b});
    }
    zero = colors[place(0)], masked_zero = blended(zero, ink_on(zero), 0.18f);
    const Palette& palette = app::palette(p.dark);
    background = rgba(palette.background.back), hatch = rgba(palette.hatch.lines),
    hatch_background = rgba(palette.hatch.background), bad = rgba(palette.status.bad);
    first = position_in_range(p.map, p.low, p.high, p.low);
    slope = (position_in_range(p.map, p.low, p.high, p.high) - first) / (p.high - p.low);
    is_linear = !(p.least > 0) && slope > 0 && !std::isinf(slope);
  }
  std::uint32_t place(double number) const {
    const double at = position_in_range(shading.map, shading.low, shading.high, number, shading.least);
    return static_cast<std::uint32_t>(at * (n_colors - 1) + 0.5);
  }
  static std::uint32_t ink_on(std::uint32_t color) {
    return rgba(readable_on({static_cast<std::uint8_t>(color), static_cast<std::uint8_t>(color >> 8),
                             static_cast<std::uint8_t>(color >> 16)}));
  }
  /// Finds the colors of numbers; returns whether no number needs a mark.
  bool find_colors(const double* numbers, std::size_t n, std::uint32_t* color_indices,
                   std::uint32_t* out) const {
    bool is_within = false;
    if (is_linear)
      is_within = find_color_indices(numbers, n, slope, first, shading.low, shading.high, n_colors - 1,
                                     color_indices);
    else
      std::transform(numbers, numbers + n, color_indices, [this](double number) { return place(number); });
    look_up(colors.data(), color_indices, n, out);
    return is_within && !shading.dots;
  }

  core::color::Shading shading;
  float scale;
  std::vector<std::uint32_t> colors;
  std::uint32_t zero, masked_zero, background, hatch, hatch_background, bad;
  double first, slope;  // of a linear range: place of the lowest number, and slope
  bool is_linear;
};

/// Pixels of each block: those with their centers in it.
struct HeatmapImage::PixelLayout {
  PixelLayout(const HeatmapPicture& p, const PooledMatrix& m)
      : left(edges(p.part.left, p.part.right, m.columns(), p.width)),
        top(edges(p.part.top, p.part.bottom, m.rows(), p.height)) {
    const double across = pitch(p.part.left, p.part.right, m.columns(), p.width),
                 down = pitch(p.part.top, p.part.bottom, m.rows(), p.height);
    gap = p.gaps && std::min(across, down) >= min_cell_with_gap ? 1 : 0;
    block_at.assign(static_cast<std::size_t>(p.width), static_cast<std::uint32_t>(m.n_columns()));
    for (std::size_t c = 0; c < m.n_columns(); ++c)
      for (int x = std::max(0, left[c]); x < std::min(p.width, left[c + 1] - gap); ++x)
        block_at[static_cast<std::size_t>(x)] = static_cast<std::uint32_t>(c);
  }
  /// Returns the pixels per block.
  static double pitch(double from, double to, const core::color::BlockRange& blocks, int pixels) {
    return pixels / ((to - from) / static_cast<double>(blocks.size));
  }
  static std::vector<int> edges(double from, double to, const core::color::BlockRange& blocks, int pixels) {
    const double size = pitch(from, to, blocks, pixels),
                 corner = from / static_cast<double>(blocks.size) - static_cast<double>(blocks.begin);
    std::vector<int> edges;
    for (std::size_t k = 0; k <= blocks.end - blocks.begin; ++k)
      edges.push_back(
          static_cast<int>(std::ceil(std::clamp((static_cast<double>(k) - corner) * size - 0.5, -1e6, 1e6))));
    return edges;
  }

  std::vector<int> left, top;           // where blocks begin, and where the last one ends
  std::vector<std::uint32_t> block_at;  // of each column of pixels; n_columns() if there is none
  int gap;
};

/// Buffers for one row of blocks.
struct HeatmapImage::RowBuffers {
  RowBuffers(const PooledMatrix& m, int width, const ColorTable& shades)
      : color_indices(m.n_columns()),
        colors(m.n_columns() + 1, shades.background),
        striped_colors(colors),
        plain(static_cast<std::size_t>(width)),
        striped(plain),
        background(static_cast<std::size_t>(width), shades.background),
        period(static_cast<int>(std::nearbyint(6 * shades.scale))),
        stripes(static_cast<std::size_t>(width + period)) {
    const int thickness = static_cast<int>(std::nearbyint(shades.scale));
    for (int x = 0; x < width + period; ++x)
      stripes[static_cast<std::size_t>(x)] = x % period < thickness ? ~0u : 0;
  }
  struct MarkedBlock {
    std::size_t column;
    unsigned marks;
    std::uint32_t ink;
  };
  std::vector<std::uint32_t> color_indices, colors, striped_colors, plain, striped, background;
  int period;
  std::vector<std::uint32_t> stripes;
  std::vector<MarkedBlock> marked;
  std::vector<std::uint32_t> pixels;
  bool has_stripes = false;

  void color(const ColorTable& s, const double* numbers, const std::uint8_t* flags) {
    marked.clear(), has_stripes = false;
    const std::size_t n = color_indices.size();
    if (s.find_colors(numbers, n, color_indices.data(), colors.data()) && !flags) return;
    striped_colors = colors;
    for (std::size_t c = 0; c < n; ++c) {
      const bool is_masked = flags && flags[c] & PooledMatrix::masked,
                 is_dropped = flags && flags[c] & PooledMatrix::dropped;
      const double v = numbers[c];
      if (v == 0 && is_masked) {  // half of the cells under a causal mask
        striped_colors[c] = s.masked_zero, has_stripes = true;
        continue;
      }
      const bool is_plain = s.is_linear && v >= s.shading.low && v <= s.shading.high && !is_dropped &&
                            !(s.shading.dots && v == 0);
      if (is_plain) continue;
      const unsigned marks = core::color::cell_style(s.shading, v, is_masked, is_dropped).marks;
      if (marks != 0) mark_block(s, c, marks);
    }
  }
  void mark_block(const ColorTable& s, std::size_t c, unsigned marks) {
    if (marks & mark::dropped) colors[c] = striped_colors[c] = s.zero;
    if (marks & (mark::not_a_number | mark::minus_infinity)) {
      colors[c] = striped_colors[c] = s.hatch_background;
      if (marks & mark::minus_infinity)
        striped_colors[c] = s.hatch, has_stripes = true;
      else
        marked.push_back({c, marks, s.bad});
      return;
    }
    const std::uint32_t ink = ColorTable::ink_on(colors[c]);
    if (marks & mark::masked) striped_colors[c] = blended(colors[c], ink, 0.18f), has_stripes = true;
    if (marks & ~mark::masked) marked.push_back({c, marks, ink});
  }
};

double HeatmapImage::cells_to_read(const HeatmapPicture& p) const {
  if (current_.can_update_to(p) && !current_.is_empty()) return 0;
  const double cells = std::max(0.0, (p.part.right - p.part.left) * (p.part.bottom - p.part.top));
  return has_rows(p) ? cells : 2 * cells;
}

bool HeatmapImage::read(const HeatmapPicture& p, double cells) {
  if (current_.can_update_to(p)) return current_.read(p, cells, threads_);
  if (cells_to_read(p) <= cells) {
    current_.begin(p);
    return current_.read(p, cells, threads_);
  }
  if (!next_.can_update_to(p)) next_.begin(p);
  if (!next_.read(p, cells, threads_)) return false;
  current_ = std::exchange(next_, {});
  return true;
}

bool HeatmapImage::needs_painting(const HeatmapPicture& p, float scale) const {
  if (!painted_) return true;
  return current_.has_cells_of(p) && (current_.has_changed() || scale != scale_ || !same_look(*painted_, p));
}

HeatmapImage::PixelRows HeatmapImage::paint(const HeatmapPicture& p, float scale) {
  const bool is_all_new = !painted_ || scale != scale_ || !same_look(*painted_, p);
  ++n_paints_;
  if (pixels_.empty() || width_ != p.width || height_ != p.height) {
    width_ = std::max(1, p.width), height_ = std::max(1, p.height);
    pixels_.assign(static_cast<std::size_t>(width_) * static_cast<std::size_t>(height_), 0);
    tiles_.assign(
        blocks(static_cast<std::size_t>(width_), tile) * blocks(static_cast<std::size_t>(height_), tile),
        n_paints_);
  }
  spans_.assign(static_cast<std::size_t>(height_), {0, 0});
  painted_ = p, scale_ = scale;
  const ColorTable shades(p, scale);
  std::vector<bool> changed = current_.take_changed();
  if (is_all_new) changed.assign(changed.size(), true);
  if (current_.is_empty() || is_all_new) {
    const std::vector<std::uint32_t> background(static_cast<std::size_t>(width_), shades.background);
    const PixelLayout layout(p, current_);
    const int first = current_.is_empty() ? height_ : layout.top.front(),
              last = current_.is_empty() ? height_ : layout.top.back();
    for (int y = 0; y < height_; ++y)
      if (y < first || y >= last) replace(y, background.data());
  }
  if (!current_.is_empty()) {
    const PixelLayout layout(p, current_);
    constexpr std::size_t rows_per_task = 16;
    threads_.run(blocks(changed.size(), rows_per_task), [&](std::size_t task) {
      RowBuffers line(current_, width_, shades);
      for (std::size_t r = task * rows_per_task; r < std::min((task + 1) * rows_per_task, changed.size());
           ++r)
        if (changed[r]) paint_row(shades, layout, r, line);
    });
  }
  PixelRows rows{height_, 0};
  const std::size_t across = blocks(static_cast<std::size_t>(width_), tile);
  for (int y = 0; y < height_; ++y) {
    const auto [first, last] = spans_[static_cast<std::size_t>(y)];
    if (first == last) continue;
    rows = {std::min(rows.begin, y), y + 1};
    for (std::size_t c = static_cast<std::size_t>(first) / tile; c * tile < static_cast<std::size_t>(last);
         ++c)
      tiles_[static_cast<std::size_t>(y) / tile * across + c] = n_paints_;
  }
  return rows;
}

void HeatmapImage::paint_row(const ColorTable& s, const PixelLayout& layout, std::size_t r,
                             RowBuffers& line) {
  const int top = layout.top[r], bottom = layout.top[r + 1];
  const int first = std::max(0, top), last = std::min(height_, bottom);
  if (first >= last) return;
  line.color(s, current_.numbers(r), current_.flags(r));
  const auto width = static_cast<std::size_t>(width_);
  look_up(line.colors.data(), layout.block_at.data(), width, line.plain.data());
  if (line.has_stripes)
    look_up(line.striped_colors.data(), layout.block_at.data(), width, line.striped.data());
  line.pixels.resize(static_cast<std::size_t>(last - first) * width);
  const auto row_of = [&](int y) { return line.pixels.data() + static_cast<std::size_t>(y - first) * width; };
  for (int y = first; y < last; ++y) {
    const int phase = ((y + painted_->phase) % line.period + line.period) % line.period;
    if (y >= bottom - layout.gap)
      std::copy_n(line.background.data(), width, row_of(y));
    else if (line.has_stripes)
      select_pixels(line.plain.data(), line.striped.data(), line.stripes.data() + phase, width, row_of(y));
    else
      std::copy_n(line.plain.data(), width, row_of(y));
  }
  for (const auto& [c, marks, ink] : line.marked) {
    const int left = layout.left[c], right = layout.left[c + 1] - layout.gap;
    const CellMarks cell{static_cast<float>(right - left), static_cast<float>(bottom - layout.gap - top),
                         s.scale};
    /// Blends ink over a part of the cell, by how much the mark covers each pixel.
    const auto ink_over = [&, ink = ink](float x0, float y0, float x1, float y1, const auto& covered) {
      const int begin = std::max({0, left, left + static_cast<int>(x0)}),
                end = std::min({width_, right, left + static_cast<int>(std::ceil(x1))});
      for (int y = std::max(first, top + static_cast<int>(y0));
           y < std::min({last, bottom - layout.gap, top + static_cast<int>(std::ceil(y1))}); ++y)
        for (int x = begin; x < end; ++x) {
          const float share =
              covered(static_cast<float>(x - left) + 0.5f, static_cast<float>(y - top) + 0.5f);
          if (share > 0) row_of(y)[x] = blended(row_of(y)[x], ink, share);
        }
    };
    if (marks & mark::not_a_number)
      ink_over(0, 0, cell.w, cell.h, [&](float x, float y) { return cell.nan_cross(x, y); });
    if (marks & mark::dropped) {
      const float center = cell.w / 2, arm = 6 * s.scale;
      const auto covered = [&](float x, float y) { return cell.dropped(x, y); };
      if (cell.min_side() < 14 * s.scale)
        ink_over(0, 0, cell.w, cell.h, covered);
      else
        ink_over(center - arm, cell.h / 2 - arm, center + arm, cell.h / 2 + arm, covered);
    }
    if (marks & mark::zero)
      ink_over(cell.w / 2 - 3 * s.scale, cell.h / 2 - 3 * s.scale, cell.w / 2 + 3 * s.scale,
               cell.h / 2 + 3 * s.scale, [&](float x, float y) { return cell.zero_dot(x, y); });
    if (marks & (mark::above | mark::below)) {
      const bool is_top = marks & mark::above;
      const float reach = 11 * s.scale;
      ink_over(cell.w - reach, is_top ? 0 : cell.h - reach, cell.w, is_top ? reach : cell.h,
               [&](float x, float y) { return cell.cut_corner(x, y, is_top); });
    }
  }
  for (int y = first; y < last; ++y) replace(y, row_of(y));
}

void HeatmapImage::replace(int y, const std::uint32_t* pixels) {
  const auto width = static_cast<std::size_t>(width_);
  std::uint32_t* before = pixels_.data() + static_cast<std::size_t>(y) * width;
  if (std::memcmp(before, pixels, 4 * width) == 0) return;
  int first = 0, last = width_;
  while (before[first] == pixels[first]) ++first;
  while (before[last - 1] == pixels[last - 1]) --last;
  std::copy(pixels + first, pixels + last, before + first);
  spans_[static_cast<std::size_t>(y)] = {first, last};
}

std::uint64_t HeatmapImage::painted(const UvRect& part) const {
  const auto at = [](float share, int length) {
    const auto place = std::clamp(share, 0.0f, 1.0f) * static_cast<float>(length);
    return static_cast<std::size_t>(std::min(static_cast<int>(place), length - 1)) / tile;
  };
  const std::size_t across = blocks(static_cast<std::size_t>(width_), tile);
  std::uint64_t last = 0;
  for (std::size_t r = at(part.top, height_); r <= at(part.bottom, height_); ++r)
    for (std::size_t c = at(part.left, width_); c <= at(part.right, width_); ++c)
      last = std::max(last, tiles_[r * across + c]);
  return last;
}

ScreenRect HeatmapImage::cross_area(const Cross& cell) const {
  const PixelLayout layout(*painted_, current_);
  const auto span = [](std::size_t at, const core::color::BlockRange& blocks, const std::vector<int>& edges) {
    const std::size_t k = at / blocks.size;
    if (k < blocks.begin || k >= blocks.end) return std::pair{-1, -1};
    return std::pair{edges[k - blocks.begin], edges[k - blocks.begin + 1]};
  };
  const auto [left, right] = span(cell.column, current_.columns(), layout.left);
  const auto [top, bottom] = span(cell.row, current_.rows(), layout.top);
  return {left, top, right, bottom};
}

}  // namespace app::render
