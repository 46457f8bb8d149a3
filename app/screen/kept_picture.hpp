#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "app/screen/brush.hpp"
#include "app/screen/damage.hpp"
#include "app/screen/row_texels.hpp"
#include "app/screen/work.hpp"

namespace app::render {

/// One place's picture: the texels of the last numbers, and the pixels that show them.
class KeptPicture {
 public:
  /// The threads share the work; they must live as long.
  explicit KeptPicture(core::ThreadPool& threads) : threads_(threads), by_rows_(threads) {}

  /// Whether its texels are those of a picture.
  bool has_texels_of(const Picture& picture) const;
  /// How many numbers must be looked at to make them, as if they were kept row after row; none to speak of
  /// where few of the rows changed.
  double cells_to_read(const Picture& picture) const;
  /// Goes on with about so many of them, where one frame does not do for all; whether little is left to do.
  bool prepare(const Picture& picture, double cells);
  /// Makes a picture's texels and uploads what is new.
  void renew(const Picture& picture, Work& work);

  /// Whether pixels would be others, drawn as this picture: from the texels that there are, also when these
  /// are those of another part of the same numbers; where there is nothing yet, the ground.
  bool wants_drawing(const Picture& picture, float scale) const;
  void draw(const Picture& picture, float scale, Brush& brush, Work& work);

  /// With the picture's pixels, top row first.
  unsigned texture() const { return pixels_.id(); }
  /// When pixels of a part were drawn last: another number, other pixels.
  std::uint64_t painted(const Share& part) const;

 private:
  /// Texels that take several frames.
  struct Making {
    Picture picture;
    MatrixTexels texels;
  };
  std::vector<Part> renew_rows(const Picture& picture, Work& work);
  void fill(const std::vector<Texel>& data, Work& work);
  /// The parts of a picture's pixels that are to be drawn anew.
  std::vector<Part> outdated(const Picture& picture, float scale) const;

  core::ThreadPool& threads_;
  std::optional<Picture> picture_;  // whose texels there are
  Texels texels_;                   // without their data, which is in the texture
  RowTexels by_rows_;               // where the picture's rows are known
  std::optional<Making> making_;
  std::vector<Part> changed_;  // of the texels, since they were drawn

  std::optional<Picture> drawn_;
  float scale_ = 0;
  std::size_t tile_columns_ = 0;
  std::vector<std::uint64_t>
      painted_;  // of each tile of pixels, a row after the other: when it was drawn last
  Texture cells_, pixels_;
};

}  // namespace app::render
