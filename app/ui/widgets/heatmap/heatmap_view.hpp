#pragma once

#include <imgui.h>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/ui/frame.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "core/base/number.hpp"
#include "core/graph/stage_matrix.hpp"

namespace app::widgets {

/// The colors of one map of numbers, and where its numbers stand along its color bar.
struct ColorScale {
  render::ColorMap map = render::ColorMap::values;
  bool dark = true;
  Ends ends;

  bool is_logarithmic() const { return ends.least > 0 && map != render::ColorMap::mask; }
  Rgb color(double number) const;
  /// 0 … 1 from the bar's low end to its high one, clamped.
  double share(double number) const;
  /// The number that stands there.
  double number_at(double share) const;
};

/// The map of colors that was chosen for numbers of a kind.
render::ColorMap chosen_map(const ColorChoice& colors, core::attention::Coloring coloring);

/// How far the low end of a bar below a picture may reach into the gap before it, at scale 1.
constexpr float bar_end_in_gap = 2;

/// A bar of these colors alone with its ends at both sides, from a point at its left on; returns its width.
float draw_plain_bar(const Frame& frame, const ColorScale& scale, ImVec2 left_middle, float width);

/// A link that makes colors logarithmic, or linear again; its width, where neither is of use 0.
float scale_link_width(const Frame& frame, Stage stage, std::size_t head);

void draw_scale_link(const Frame& frame, const std::string& place, ImVec2 right_middle);

/// The end of a range as it stands beside the bar: whole ends bare, others with as many decimals as say
/// something.
std::string end_text(double value);

/// The numbers of a heatmap: a matrix, or a stage that is not copied for a few of its cells.
class Numbers {
 public:
  explicit Numbers(const arma::mat& matrix)
      : n_rows(matrix.n_rows), n_cols(matrix.n_cols), matrix_(&matrix) {}
  explicit Numbers(const core::attention::StageMatrix& stage)
      : n_rows(stage.n_rows()), n_cols(stage.n_cols()), stage_(&stage) {}

  std::size_t n_rows, n_cols;
  double operator()(std::size_t row, std::size_t column) const {
    return matrix_ ? (*matrix_)(row, column) : (*stage_)(row, column);
  }
  /// All of them; made now where they are not kept.
  operator const arma::mat&() const {
    return matrix_ ? *matrix_ : **stage_;
  }  // NOLINT(google-explicit-constructor)

 private:
  const arma::mat* matrix_ = nullptr;
  const core::attention::StageMatrix* stage_ = nullptr;
};

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
