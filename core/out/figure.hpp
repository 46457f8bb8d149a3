#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/color.hpp"
#include "core/graph/model.hpp"
#include "core/graph/stages.hpp"
#include "core/graph/trace.hpp"
#include "core/out/drawing.hpp"
#include "core/out/tables.hpp"

namespace core::figures {

/// How large cells are drawn at most.
enum class Room { one_map, several_maps };

/// One matrix to be drawn as a heatmap.
struct Map {
  formats::LabelledMatrix matrix;
  std::vector<Run> title;  ///< above the map
  color::Shading shading = {};
  const arma::mat* visible = nullptr;  ///< of the size of the numbers: 0 = hidden, or nullptr
  const arma::mat* kept = nullptr;     ///< of the size of the numbers: 0 = dropped, or nullptr
  std::vector<attention::MaskCell> by_hand = {};
  bool tokens_above = true;  ///< columns are tokens, with their index below the name
  bool plain_one = false;    ///< an exact one is written "1"
  bool numbers = true;       ///< in cells that are large enough
  bool bar = true;           ///< a color bar below
  Room room = Room::one_map;
};

/// A heatmap with its title, labels, numbers, marks and color bar; picture is where its cells are.
struct MapFigure {
  DisplayList list;
  Area picture;
  unsigned marks = 0;                             ///< all that its cells bear: a sum of color::mark
  std::size_t block_rows = 1, block_columns = 1;  ///< cells that one pixel stands for
  double unit = 1;                                ///< what the numbers in the cells are to be multiplied by
};

/// Draws a map at the origin. Matrices of more cells than can be seen are pooled by color::pooled().
MapFigure map_figure(const Map& map, const color::Palette& palette);

/// A color bar with its two ends and small triangles at the smallest and the largest finite number.
DisplayList bar_figure(const color::Shading& shading, double smallest, double largest, double width,
                       const color::Palette& palette);

/// The cells of a map, or the blocks of cells that stand for them, as they are drawn.
struct Grid {
  Area picture;
  std::size_t rows = 0, columns = 0;  ///< of what is drawn
  std::size_t block_rows = 1, block_columns = 1;
  double cell_width = 0, cell_height = 0;
  bool separate = true;                ///< cells are boxes of their own with one pixel between them
  std::vector<color::CellLook> looks;  ///< rows × columns

  const color::CellLook& look(std::size_t row, std::size_t column) const {
    return looks[row * columns + column];
  }
  Area cell(std::size_t row, std::size_t column) const {
    const double gap = separate ? 1 : 0;
    return {picture.x + static_cast<double>(column) * cell_width,
            picture.y + static_cast<double>(row) * cell_height, cell_width - gap, cell_height - gap};
  }
};

/// The color of a cell, whatever is marked on it.
Rgb ground_of(const Map& map, const color::CellLook& look, const color::Palette& palette);

/// Colors, marks and numbers of all cells.
void draw_cells(DisplayList& list, const Map& map, const Grid& grid, const color::Palette& palette);

/// The numbers in the cells; gives the unit they are written in.
double draw_numbers(DisplayList& list, const Map& map, const Grid& grid, const color::Palette& palette);

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
DisplayList notes_figure(const Notes& notes, const color::Palette& palette, double room);

/// The ends of a range of colors; logarithmic from the least size on when that is positive.
struct Range {
  double low = 0, high = 1, least = 0;
};

/// What a figure shows and how.
struct FigureOptions {
  /// One stage, or all stages of one head in the order of the computation.
  std::optional<attention::Stage> stage = attention::Stage::weights;
  std::optional<std::size_t> head = 0;  ///< nothing: all heads beside each other, in colors of one range
  std::size_t sequence = 0;             ///< the one that the trace was computed from
  bool dark = false;
  bool numbers = true;  ///< in cells that are large enough
  color::ColorMap sequential = color::ColorMap::weights, diverging = color::ColorMap::values;
  /// The range of one matrix. Without it, that of weights and masks is fixed, that of other stages symmetric
  /// around 0 as far as the numbers go.
  std::function<Range(attention::Stage stage, std::size_t head)> range = {};
};

/// A figure of a stage or of the whole computation, fit for a page: tokens on the axes, formula, shape,
/// color bar, and in words below what the marks in it mean.
///
/// Throws core::Error when the model has no such stage or head.
DisplayList figure(const attention::Model& model, const attention::Trace& trace,
                   const FigureOptions& options);

}  // namespace core::figures
