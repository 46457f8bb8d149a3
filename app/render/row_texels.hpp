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

/// The texels of a picture whose rows are known; from one version to the next only those are made anew whose
/// numbers changed.
class RowTexels {
 public:
  /// Brings them up to date; before is the picture of the last time, with rows as well, or nullptr. Gives the part
  /// in which texels look otherwise than before; of other numbers of rows and columns, all.
  Part renew(const Picture& picture, const Picture* before);
  /// With their data.
  const Texels& texels() const { return texels_; }

 private:
  /// Some texels of a row; adds to the part what looks otherwise now.
  void write(const Shades& shades, std::size_t row, std::size_t first, std::size_t last, Part& changed);

  Pool pool_;
  Texels texels_;
  std::vector<double> visible_,
      kept_;  // of each block; empty when nothing is marked
};

}  // namespace app::render
