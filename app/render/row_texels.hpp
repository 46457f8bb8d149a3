#pragma once

#include "app/render/painter.hpp"
#include "app/render/picture.hpp"
#include "app/render/pool.hpp"

namespace app::render {

/// The texels of a picture whose rows are known; from one version to the next only those are made anew that
/// changed.
class RowTexels {
 public:
  /// Brings them up to date; before is the picture of the last time, with rows as well, or nullptr. Gives
  /// what was written.
  Pool::Written renew(const Picture& picture, const Picture* before);
  /// With their data.
  const Texels& texels() const { return texels_; }

 private:
  void write(const Shades& shades, std::size_t row, std::size_t column);

  Pool pool_;
  Texels texels_;
  std::vector<double> visible_, kept_;  // of each block; empty when nothing is marked
};

}  // namespace app::render
