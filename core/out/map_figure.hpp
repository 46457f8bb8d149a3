#pragma once

#include <vector>

#include "core/base/cells.hpp"
#include "core/base/palette.hpp"
#include "core/graph/model.hpp"
#include "core/out/display_list.hpp"
#include "core/out/labelled_matrix.hpp"

namespace core::figures {

/// How large cells are drawn at most.
enum class Room { one_map, several_maps };

/// One matrix to be drawn as a heatmap.
struct Map {
  formats::LabelledMatrix matrix;
  std::vector<Run> title;  ///< above the map
  colour::Shading shading = {};
  const arma::mat* visible = nullptr;  ///< of the size of the numbers: 0 = hidden, or nullptr
  const arma::mat* kept = nullptr;     ///< of the size of the numbers: 0 = dropped, or nullptr
  std::vector<attention::MaskCell> by_hand = {};
  bool tokens_above = true;  ///< columns are tokens, with their index below the name
  bool plain_one = false;    ///< an exact one is written "1"
  bool numbers = true;       ///< in cells that are large enough
  bool bar = true;           ///< a colour bar below
  Room room = Room::one_map;
};

/// A heatmap with its title, labels, numbers, marks and colour bar; picture is where its cells are.
struct MapFigure {
  DisplayList list;
  Area picture;
  unsigned marks = 0;                             ///< all that its cells bear: a sum of colour::mark
  std::size_t block_rows = 1, block_columns = 1;  ///< cells that one pixel stands for
  double unit = 1;                                ///< what the numbers in the cells are to be multiplied by
};

/// Draws a map at the origin. Matrices of more cells than can be seen are pooled by colour::pooled().
MapFigure map_figure(const Map& map, const colour::Palette& palette);

/// A colour bar with its two ends and small triangles at the smallest and the largest finite number.
DisplayList bar_figure(const colour::Shading& shading, double smallest, double largest, double width,
                       const colour::Palette& palette);

}  // namespace core::figures
