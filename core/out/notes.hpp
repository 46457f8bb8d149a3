#pragma once

#include <set>
#include <string>

#include "core/out/map_figure.hpp"

namespace core::figures {

/// What has to be said of some maps in words: their marks, and what their pixels stand for.
struct Notes {
  unsigned marks = 0;
  bool by_hand = false;
  std::size_t block_rows = 1, block_columns = 1;
  std::set<std::string> pooled_as;  ///< what of several cells is shown: "largest"
  std::set<double> units;           ///< of the numbers in cells, 1 among them
  bool logarithmic = false;

  void add(const MapFigure& figure, const Map& map);
};

/// A sample and a few words for each, in lines no wider than the room.
DisplayList notes_figure(const Notes& notes, const colour::Palette& palette, double room);

}  // namespace core::figures
