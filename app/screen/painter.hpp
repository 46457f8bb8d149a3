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
using core::color::position_in_range;
using core::color::sequential_maps;
using core::color::stops;

/// A row and a column that stay bright while the rest is blended with the background.
struct Cross {
  std::size_t row = 0, column = 0;
  friend bool operator==(const Cross&, const Cross&) = default;
};

/// Numbers of a picture; the matrices must live until paint() returns.
struct PictureCells {
  const arma::mat* numbers = nullptr;
  const arma::mat* visible = nullptr;  ///< same size as numbers: 0 = masked, or nullptr
  const arma::mat* kept = nullptr;     ///< same size as numbers: 0 = dropped, or nullptr
  RowView rows;                        ///< the same numbers as stored, if known; numbers may then be nullptr
  const HeadChange* change = nullptr;  ///< of rows: difference from the previous version, if known
  std::uint64_t version = 0;           ///< changes whenever the numbers behind the pointers may have changed
  std::uint64_t flags_version = 0;     ///< with rows: the same for visible and kept
};

/// The part of a matrix between two columns and two rows, in cells.
struct MatrixPart {
  double left = 0, top = 0, right = 0, bottom = 0;
};

/// Content of a heatmap; an equal picture of equal numbers is not drawn again.
///
/// Marks: −inf and masked cells are hatched, NaN is crossed from corner to corner, dropped cells have a ×,
/// numbers outside low … high a cut corner.
struct HeatmapPicture {
  std::string place;  ///< key of its place in the window: "strip/weights"
  PictureCells cells;
  bool pending = false;  ///< numbers are not ready: the last picture of the place stays, if any
  ColorMap map = ColorMap::values;
  bool dark = true;
  double low = -1, high = 1;
  double least = 0;           ///< of a logarithmic range: smallest size with its own color; 0 = linear
  bool dots = false;          ///< exact zeros have a dot, for cells without numbers
  int width = 0, height = 0;  ///< in pixels, of the whole picture
  MatrixPart part;            ///< of the matrix that fills the picture
  bool gaps = true;           ///< one pixel of background between cells, for cells of eight pixels and more
  std::optional<Cross> cross;
  int phase = 0;  ///< (x + y) of the picture's corner on the screen modulo 6, to align hatches
};

/// Matrix cells per pixel of the picture in each direction: 1, or more when pooled.
struct Pooling {
  std::size_t rows = 1, columns = 1;
};
Pooling pooling(const HeatmapPicture& picture);

/// Returns whether a picture shows all of a matrix with known rows, so that a change needs little work.
bool has_rows(const HeatmapPicture& picture);

/// The only interface that converts numbers to pixels.
class Painter {
 public:
  virtual ~Painter() = default;
  /// Returns a texture of width × height pixels for ImGui's draw lists, top row first.
  virtual ImTextureID paint(const HeatmapPicture& picture) = 0;

  /// Sets the display's scale, which determines the size of marks.
  virtual void set_scale(float) {}
  /// Must be called after every frame.
  virtual void end_frame() {}
  /// Returns whether pictures of large matrices wait for a later frame, as one frame reads a few million
  /// numbers; until then their places show the last pictures, another part of them, or the background.
  virtual bool is_behind() const { return false; }
  /// Returns the version of a part of a picture's texture, which changes with its pixels; 0 for others.
  virtual std::uint64_t painted(std::uint64_t, const UvRect&) const { return 0; }
};

}  // namespace app::render
