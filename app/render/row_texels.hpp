#pragma once

#include "app/render/painter.hpp"
#include "app/render/picture.hpp"
#include "app/render/pool.hpp"

namespace app::render {

/// A part of a texture, without its right and lower edge.
struct Part {
  std::size_t left = 0, top = 0, right = 0, bottom = 0;
  bool is_empty() const { return left >= right || top >= bottom; }
  friend bool operator==(const Part&, const Part&) = default;
};

/// What of the numbers is another than in the picture of the last time, which has rows as well, or nullptr.
CellChange change_since(const Picture* before, const Picture& now);

/// The texels of a picture whose rows are known; from one version to the next only those are made anew whose
/// numbers changed.
class RowTexels {
 public:
  /// Goes on with about so many cells of what renew() has to look at; whether it has little left to do. Until
  /// then the texels stay those of before.
  bool prepare(const Picture& picture, const Picture* before, double cells);
  /// Brings them up to date; before is the picture of the last time, with rows as well, or nullptr. Gives the
  /// part in which texels look otherwise than before; of other numbers of rows and columns, all.
  Part renew(const Picture& picture, const Picture* before);
  /// With their data.
  const Texels& texels() const { return texels_; }

 private:
  /// Whether the pool is that of a picture, all of its rows.
  bool holds(const Picture& picture) const;
  /// What is to be pooled for a picture.
  CellChange change_for(const Picture& picture, const Picture* before) const;
  /// Pools what changed, and takes down whose numbers these are.
  Pool::Written pool(const Picture& picture, const CellChange& change);
  /// Some texels of a row; adds to the part what looks otherwise now.
  void write(const Shades& shades, std::size_t row, std::size_t first, std::size_t last, Part& changed);

  Pool pool_;
  std::optional<Picture> pooled_;  // whose numbers are in the pool
  std::size_t pooled_rows_ = 0;    // of them, the first ones; of those below, older numbers
  Texels texels_;
  std::vector<double> visible_,
      kept_;  // of each block; empty when nothing is marked
};

}  // namespace app::render
