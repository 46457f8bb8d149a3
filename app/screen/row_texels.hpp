#pragma once

#include <vector>

#include "app/screen/painter.hpp"
#include "app/screen/part.hpp"
#include "app/screen/picture.hpp"
#include "app/screen/pool.hpp"

namespace app::render {

/// What of the numbers is another than in the picture of the last time, which has rows as well, or nullptr.
HeadChange change_since(const Picture* before, const Picture& now);

/// The texels of a picture whose rows are known; from one version to the next only those are made anew whose
/// numbers changed.
class RowTexels {
 public:
  /// The threads share the work; they must live as long.
  explicit RowTexels(core::ThreadPool& threads) : threads_(threads) {}

  /// Goes on with about so many cells of what renew() has to look at; whether it has little left to do. Until
  /// then the texels stay those of before.
  bool prepare(const Picture& picture, const Picture* before, double cells);
  /// Brings them up to date; before is the picture of the last time, with rows as well, or nullptr. Gives the
  /// parts in which texels look otherwise than before; of other numbers of rows and columns, all.
  std::vector<Part> renew(const Picture& picture, const Picture* before);
  /// With their data.
  const Texels& texels() const { return texels_; }

 private:
  /// Whether what is in the pool is of use for a picture.
  bool fits(const Picture& picture) const;
  /// Whether the pool is that of a picture, all of its rows.
  bool holds(const Picture& picture) const;
  /// What is to be pooled for a picture.
  HeadChange change_for(const Picture& picture, const Picture* before) const;
  /// Pools what changed, and takes down whose numbers these are.
  Pool::Written pool(const Picture& picture, const HeadChange& change);
  /// Some texels of a row; adds what looks otherwise now.
  void write(const Shades& shades, std::size_t row, std::size_t first, std::size_t last,
             ChangedTiles& changed);

  core::ThreadPool& threads_;
  Pool pool_;
  std::optional<Picture> pooled_;  // whose numbers are in the pool
  std::size_t pooled_rows_ = 0;    // of them, the first ones; of those below, older numbers
  Texels texels_;
  std::vector<double> visible_,
      kept_;  // of each block; empty when nothing is marked
};

}  // namespace app::render
