#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "app/screen/painter.hpp"
#include "core/base/thread_pool.hpp"

namespace app::render {

/// Displayed part of a picture's matrix in blocks, each of at least one pixel and with one number to show.
///
/// That is the largest number, in a signed map the one farthest from 0; NaN wins, −∞ loses; in a mask it is
/// the mean. A block is masked or dropped only if all its cells are.
class PooledMatrix {
 public:
  static constexpr std::uint8_t masked = 1, dropped = 2;

  /// Returns whether a picture is read, or needs only known changes to be read.
  bool can_update_to(const HeatmapPicture& picture) const;
  /// Starts another picture, with nothing read.
  void begin(const HeatmapPicture& picture);
  /// Reads changes and about `cells` more cells of a picture that it follows; returns whether all is read.
  bool read(const HeatmapPicture& picture, double cells, core::ThreadPool& threads);

  bool is_empty() const { return numbers_.empty(); }
  /// Returns whether the numbers are of a picture, possibly of another part of it.
  bool has_cells_of(const HeatmapPicture& picture) const;
  /// Returns whether all of this part is read and its flags are those of the picture.
  bool is_up_to_date(const HeatmapPicture& picture) const;

  /// Rows and columns of blocks; begin and end count from the matrix's first block.
  const core::color::BlockRange& rows() const { return rows_; }
  const core::color::BlockRange& columns() const { return columns_; }
  std::size_t n_rows() const { return rows_.end - rows_.begin; }
  std::size_t n_columns() const { return columns_.end - columns_.begin; }
  const double* numbers(std::size_t row) const { return numbers_.data() + row * n_columns(); }
  /// Returns sums of hidden and dropped, or nullptr if there are none.
  const std::uint8_t* flags(std::size_t row) const {
    return flags_.empty() ? nullptr : flags_.data() + row * n_columns();
  }
  /// Returns whether each row of blocks was read since the last call.
  std::vector<bool> take_changed();
  bool has_changed() const { return has_changed_; }

 private:
  void read_rows(const HeatmapPicture& picture, double cells, core::ThreadPool& threads);
  void read_matrix(const HeatmapPicture& picture, double cells, core::ThreadPool& threads);
  void read_flags(const HeatmapPicture& picture, core::ThreadPool& threads);
  bool is_whole() const;
  void mark_all_changed();

  std::optional<HeatmapPicture> picture_;
  core::color::BlockRange rows_, columns_;
  std::size_t n_read_ = 0;           // rows of the matrix if has_rows(), else columns of blocks
  std::vector<double> pooled_rows_;  // rows of the matrix × columns of blocks, if has_rows()
  std::vector<double> numbers_;      // rows × columns of blocks
  std::vector<std::uint8_t> flags_;
  using FlagsKey = std::tuple<const arma::mat*, const arma::mat*, std::uint64_t>;
  static FlagsKey flags_key(const HeatmapPicture& picture);
  std::optional<FlagsKey> flags_of_;
  std::vector<bool> changed_;
  bool has_changed_ = false;
};

/// Pixels of a heatmap, computed without OpenGL: colors, gaps and marks, but not the cross.
class HeatmapImage {
 public:
  /// Shares the work among threads, which must outlive it.
  explicit HeatmapImage(core::ThreadPool& threads) : threads_(threads) {}

  /// Returns whether its numbers are those of a picture.
  bool has_numbers_of(const HeatmapPicture& picture) const { return current_.is_up_to_date(picture); }
  /// Returns how many cells read() has to read, at the cost of rows; 0 if only some rows changed.
  double cells_to_read(const HeatmapPicture& picture) const;
  /// Reads the numbers of a picture, or about `cells` cells of them; returns whether all are read. Until then
  /// the old numbers stay.
  bool read(const HeatmapPicture& picture, double cells);

  /// Returns whether painting this picture would change pixels. It uses the present numbers, even of another
  /// part of the same matrix, and the background where there are none.
  bool needs_painting(const HeatmapPicture& picture, float scale) const;
  struct PixelRows {
    int begin = 0, end = 0;  ///< end is exclusive
  };
  /// Computes the pixels; returns the rows of pixels that changed.
  PixelRows paint(const HeatmapPicture& picture, float scale);

  int width() const { return width_; }
  int height() const { return height_; }
  /// RGBA, width × height, top row first.
  const std::vector<std::uint32_t>& pixels() const { return pixels_; }
  /// Returns the version of a part of the image, which changes with its pixels.
  std::uint64_t painted(const UvRect& part) const;
  /// Returns the painted pixels of a cell's column and row; right and bottom are exclusive.
  ScreenRect cross_area(const Cross& cell) const;

 private:
  struct ColorTable;
  struct PixelLayout;
  struct RowBuffers;
  void paint_row(const ColorTable& shades, const PixelLayout& layout, std::size_t row, RowBuffers& line);
  void replace(int y, const std::uint32_t* pixels);

  core::ThreadPool& threads_;
  PooledMatrix current_, next_;  // next_: of a matrix that takes several frames to read
  std::optional<HeatmapPicture> painted_;
  float scale_ = 1;
  int width_ = 0, height_ = 0;
  std::vector<std::uint32_t> pixels_;
  std::uint64_t n_paints_ = 0;
  std::vector<std::uint64_t> tiles_;        // version of each tile, row-major
  std::vector<std::pair<int, int>> spans_;  // per row of pixels: range changed by the last paint()
};

}  // namespace app::render
