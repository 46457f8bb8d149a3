#pragma once

#include <imgui.h>

#include <armadillo>
#include <cstdint>
#include <optional>
#include <string>

#include "app/screen/damage.hpp"
#include "app/theme/theme.hpp"
#include "core/base/color.hpp"
#include "core/engine/engine.hpp"

namespace app::render {

using core::attention::fast::HeadChange;
using core::attention::fast::RowView;
using core::color::color_at;
using core::color::ColorMap;
using core::color::diverging_maps;
using core::color::is_diverging;
using core::color::NamedMap;
using core::color::place_in_range;
using core::color::sequential_maps;
using core::color::stops;

/// A row and a column that stay bright while the rest is mixed with the ground.
struct Cross {
  std::size_t row = 0, column = 0;
  friend bool operator==(const Cross&, const Cross&) = default;
};

/// The numbers behind a picture; the matrices must live until paint() returns.
struct PictureCells {
  const arma::mat* numbers = nullptr;
  const arma::mat* visible = nullptr;  ///< of the size of numbers: 0 = hidden, or nullptr
  const arma::mat* kept = nullptr;     ///< of the size of numbers: 0 = dropped, or nullptr
  RowView rows;  ///< the same numbers as they are kept, where that is known; numbers may then be nullptr
  const HeadChange* change = nullptr;  ///< of rows: what differs from the version before, where that is known
  std::uint64_t version = 0;           ///< changes whenever the numbers behind the pointers may have changed
  std::uint64_t flags_version = 0;     ///< where there are rows: the same for visible and kept
};

/// The part of a matrix between two columns and two rows, in cells.
struct MatrixPart {
  double left = 0, top = 0, right = 0, bottom = 0;
};

/// What a heatmap is to show; an equal picture of equal numbers is not drawn again.
///
/// Marks: −inf and cells whose hidden is 0 are hatched, NaN is crossed corner to corner, cells whose dropped
/// is 0 bear a ×, numbers outside low … high a cut corner.
struct Picture {
  std::string place;  ///< where it stands in the window, as a key: "strip/weights"
  PictureCells cells;
  bool pending =
      false;  ///< the numbers are still to come: the last picture of the place stays, or there is none
  ColorMap map = ColorMap::values;
  bool dark = true;
  double low = -1, high = 1;
  double least = 0;   ///< of a logarithmic range: the smallest size with a color of its own; 0 = linear
  bool dots = false;  ///< exact zeros bear a dot, where no numbers stand in the cells
  int width = 0, height = 0;  ///< in pixels, of the whole picture
  MatrixPart part;            ///< of the matrix that fills the picture
  bool gaps = true;           ///< one pixel of ground between cells, for cells of eight pixels and more
  std::optional<Cross> cross;
  int phase = 0;  ///< (x + y) of the picture's corner on the screen modulo 6, so that hatches meet
};

/// How many cells of the matrix one pixel of the picture stands for in each direction: 1, or more when
/// pooled.
struct Pooling {
  std::size_t rows = 1, columns = 1;
};
Pooling pooling(const Picture& picture);

/// Whether a picture shows all of a matrix whose rows are known, so that after a change little of it is done
/// again.
bool has_rows(const Picture& picture);

/// The only one who turns numbers into pixels.
class Painter {
 public:
  virtual ~Painter() = default;
  /// A texture of width × height pixels for ImGui's draw lists, top row first.
  virtual ImTextureID paint(const Picture& picture) = 0;

  /// How large marks are drawn: the display's scale.
  virtual void set_scale(float) {}
  /// After every frame.
  virtual void end_frame() {}
  /// Whether pictures of large matrices wait for one of the next frames, as one frame looks at a few million
  /// numbers; until then their places show the last pictures, or another part of them, or the ground.
  virtual bool is_behind() const { return false; }
  /// When a part of a picture's texture was painted last: another number, other pixels; 0 for other textures.
  virtual std::uint64_t painted(std::uint64_t, const Share&) const { return 0; }
};

}  // namespace app::render
