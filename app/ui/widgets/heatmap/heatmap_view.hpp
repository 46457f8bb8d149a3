#pragma once

#include <imgui.h>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/ui/frame.hpp"
#include "app/ui/widgets/text.hpp"
#include "core/base/number.hpp"

namespace app::widgets {

/// Numbers that are no stage, to be drawn in the manner of one; what is pointed at must outlive the drawing.
struct OtherNumbers {
  const arma::mat* numbers = nullptr;
  std::uint64_t version = 0;                       ///< another number, other numbers
  Ends ends;                                       ///< of the colors
  const std::vector<std::string>* rows = nullptr;  ///< names beside the rows' indices
  const std::vector<std::string>* keys =
      nullptr;  ///< names above columns of tokens, when they are not the shown ones
  const std::vector<std::string>* columns =
      nullptr;  ///< names above the columns instead of indices, or nullptr
  bool of_tokens =
      false;  ///< rows and columns are the shown tokens: hidden cells and the pinned cross are marked
  /// Cell for cell those of the stage in another state: hovering and clicking mean the live stage's cell, and
  /// whoever draws the map says in a tooltip what is there.
  bool of_stage = false;
  std::optional<core::attention::Coloring> coloring = {};  ///< instead of the stage's
  const arma::mat* visible = nullptr;                      ///< 0 = hidden, instead of the live mask
  const arma::mat* kept = nullptr;                         ///< 0 = dropped, or nullptr
  const ValueRange* extent = nullptr;                      ///< of the numbers, when it is known
};

/// What stands above the columns of a heatmap; tokens only where a stage has a column a token.
enum class ColumnLabels { none, indices, tokens };

/// One heatmap: which numbers, how large, and what stands around it.
struct Heatmap {
  std::string place;  ///< landmark and key of the picture: "strip/weights"
  Stage stage = Stage::weights;
  std::size_t head = 0;
  int width = 0, height = 0;  ///< of the picture in pixels
  float label_width = 0;      ///< room left of the picture for the rows' names; 0 = none
  bool row_tokens = true;     ///< else indices only
  ColumnLabels columns = ColumnLabels::tokens;
  bool bar_beside = false;  ///< the color bar stands right of the picture instead of below
  bool show_bar = true;
  bool show_numbers = true;  ///< where they fit
  int max_decimals = 4;      ///< of the numbers, though more would fit
  bool hundredths = false;   ///< numbers are written in hundredths and without decimals
  bool whole = false;        ///< shows all of the matrix, whatever is zoomed
  float gutter_width =
      0;  ///< of each of the columns of row sums and entropies right of the picture; 0 = none
  const OtherNumbers* other =
      nullptr;  ///< instead of the stage's own; its cells are pinned only when they are of the stage
};

/// Heights and widths around the picture, in pixels.
float column_label_height(const Frame& frame, const Heatmap& map);
float bar_room(const Frame& frame, const Heatmap& map);
/// How far the low end of a bar below the picture reaches to the left of it.
float bar_low_room(const Frame& frame, const Heatmap& map);
/// The same for the ends that most numbers have, without a look at them.
float usual_bar_low_room(const Frame& frame, const Heatmap& map);

/// How much larger than usual text is in comparison with lengths; a cell grows with its numbers.
float text_growth(const Frame& frame);
/// The width of cells that hold numbers of so many characters with a digit's width between neighbours.
float cell_width_for(const Frame& frame, int characters);
/// What the numbers of a stage take in its cells; of a very large one its largest number alone says so.
core::text::NumberNeeds needs_of_stage(const Frame& frame, Stage stage, std::size_t head,
                                       std::optional<double> unit = std::nullopt);

/// The numbers that a heatmap shows.
Numbers shown_numbers(const Frame& frame, const Heatmap& map);

/// Draws the picture with labels, numbers, marks and bar; its labels start at top_left.
///
/// Hovering previews a cell and a click pins it, or releases it when it is pinned; the wheel zooms, dragging
/// moves what is shown.
void draw_heatmap(const Frame& frame, const Heatmap& map, ImVec2 top_left);

/// The picture alone, without anything around it, at a place on the screen.
void draw_picture(const Frame& frame, const Heatmap& map, ImVec2 corner);

/// How many columns of figures stand right of a heatmap with gutters: row sums, and of weights their entropy.
int gutter_count(Stage stage);

/// A stage as it was before the last edit, of the same shape, or nullptr.
const core::attention::StageMatrix* numbers_before(const Frame& frame, Stage stage, std::size_t head);

/// How a heatmap's numbers are colored.
core::attention::Coloring coloring_of(const Heatmap& map);

/// The ends of a stage's colors as people chose them.
Ends color_ends(const Frame& frame, Stage stage, std::size_t head);
/// Those of all stages and heads, to be locked.
std::map<std::pair<Stage, std::size_t>, Ends> all_color_ends(const Frame& frame);

}  // namespace app::widgets
