#pragma once

#include <cstddef>
#include <vector>

namespace app::render {

/// A part of an image or of a grid, without its right and lower edge.
struct Part {
  std::size_t left = 0, top = 0, right = 0, bottom = 0;
  friend bool operator==(const Part&, const Part&) = default;
};

/// No more of them are drawn at once; the same number is in shaders/heatmap.vert.
inline constexpr std::size_t most_parts = 48;

/// The cells of a grid that are set, as no more than so many parts, with few others: those side by side
/// become one part, and such parts one above the other.
std::vector<Part> joined(const std::vector<bool>& grid, std::size_t columns, std::size_t most);

/// Where an image changed, by tiles of a few texels; threads may add at once what lies in other rows of
/// tiles.
class ChangedTiles {
 public:
  static constexpr std::size_t tile = 8;

  /// Nothing changed of so many rows and columns.
  ChangedTiles(std::size_t rows, std::size_t columns);
  void add(std::size_t row, std::size_t column) { grid_[row / tile * columns_ + column / tile] = true; }
  /// No more than so many parts that hold all that was added and little else; none when nothing was.
  std::vector<Part> parts(std::size_t most) const;

 private:
  std::size_t columns_;              // of tiles
  Part all_;                         // of texels
  std::vector<unsigned char> grid_;  // rows × columns, whether it changed
};

}  // namespace app::render
