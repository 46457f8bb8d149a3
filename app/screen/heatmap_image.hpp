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

/// The visible part of a picture's matrix in blocks, each with a pixel at least and one number to show.
///
/// That is the largest number, of a signed map the one farthest from 0; NaN wins, −∞ loses; of a mask it is
/// the mean. A block is hidden or dropped only when every cell of it is.
class PooledMatrix {
 public:
  static constexpr std::uint8_t hidden = 1, dropped = 2;

  /// Whether it is read, or can be by reading only what changed.
  bool follows(const Picture& picture) const;
  /// Begins with another picture, of which nothing is read.
  void begin(const Picture& picture);
  /// Goes on with about so many cells of a picture that it follows, after what changed; whether all is read.
  bool read(const Picture& picture, double cells, core::ThreadPool& threads);

  bool is_empty() const { return numbers_.empty(); }
  /// Whether these are the numbers of a picture, perhaps of another part of it.
  bool has_cells_of(const Picture& picture) const;
  /// Whether all of that part is read and its flags are those of the picture.
  bool is_up_to_date(const Picture& picture) const;

  /// Rows and columns of blocks; begin and end count from the matrix's first block.
  const core::color::Blocks& rows() const { return rows_; }
  const core::color::Blocks& columns() const { return columns_; }
  std::size_t n_rows() const { return rows_.end - rows_.begin; }
  std::size_t n_columns() const { return columns_.end - columns_.begin; }
  const double* numbers(std::size_t row) const { return numbers_.data() + row * n_columns(); }
  /// Sums of hidden and dropped, or nullptr when nothing is.
  const std::uint8_t* flags(std::size_t row) const {
    return flags_.empty() ? nullptr : flags_.data() + row * n_columns();
  }
  /// [row of blocks]: whether it was read since this was called last.
  std::vector<bool> take_changed();
  bool has_changed() const { return has_changed_; }

 private:
  void read_rows(const Picture& picture, double cells, core::ThreadPool& threads);
  void read_matrix(const Picture& picture, double cells, core::ThreadPool& threads);
  void read_flags(const Picture& picture, core::ThreadPool& threads);
  bool is_whole() const;
  void change_all();

  std::optional<Picture> of_;
  core::color::Blocks rows_, columns_;
  std::size_t read_ = 0;         // rows of the matrix where rows are known, else columns of blocks
  std::vector<double> along_;    // rows of the matrix × columns of blocks: of rows that change one at a time
  std::vector<double> numbers_;  // rows × columns of blocks
  std::vector<std::uint8_t> flags_;
  using FlagsKey = std::tuple<const arma::mat*, const arma::mat*, std::uint64_t>;
  static FlagsKey flags_key(const Picture& picture);
  std::optional<FlagsKey> flags_of_;
  std::vector<bool> changed_;
  bool has_changed_ = false;
};

/// A heatmap's pixels, made without OpenGL: colors, gaps and marks, but not the cross.
class HeatmapImage {
 public:
  /// The threads share the work; they must live as long.
  explicit HeatmapImage(core::ThreadPool& threads) : threads_(threads) {}

  /// Whether its numbers are those of a picture.
  bool has_numbers_of(const Picture& picture) const { return now_.is_up_to_date(picture); }
  /// How many cells read() has to look at, as if they were known by rows; 0 where only some rows changed.
  double cells_to_read(const Picture& picture) const;
  /// Reads the numbers of a picture, or about so many cells of them; whether all are read. Until then the
  /// numbers of before stay.
  bool read(const Picture& picture, double cells);

  /// Whether pixels would be others, painted as this picture: from the numbers that there are, also when
  /// these are those of another part of the same matrix; where there is nothing yet, the ground.
  bool wants_painting(const Picture& picture, float scale) const;
  struct PixelRows {
    int begin = 0, end = 0;  ///< without its end
  };
  /// Makes the pixels; the rows of them that are others than before.
  PixelRows paint(const Picture& picture, float scale);

  int width() const { return width_; }
  int height() const { return height_; }
  /// RGBA, width × height, top row first.
  const std::vector<std::uint32_t>& pixels() const { return pixels_; }
  /// When pixels of a part became others: another number, other pixels.
  std::uint64_t painted(const Share& part) const;
  /// The pixels of a cell's column and row as they were painted, from left and top to before right and
  /// bottom.
  Area cell_at(const Cross& cell) const;

 private:
  struct Shades;
  struct Layout;
  struct Line;
  void paint_row(const Shades& shades, const Layout& layout, std::size_t row, Line& line);
  void replace(int y, const std::uint32_t* pixels);

  core::ThreadPool& threads_;
  PooledMatrix now_, next_;  // of a matrix that takes several frames, the numbers still to come
  std::optional<Picture> painted_;
  float scale_ = 1;
  int width_ = 0, height_ = 0;
  std::vector<std::uint32_t> pixels_;
  std::uint64_t n_paints_ = 0;
  std::vector<std::uint64_t> tiles_;        // when they became others, a row of tiles after the other
  std::vector<std::pair<int, int>> spans_;  // of each row of pixels, what the last paint() changed
};

}  // namespace app::render
