#pragma once

#include <imgui.h>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/ui/frame.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "core/base/number.hpp"
#include "core/graph/stage_matrix.hpp"

namespace app::widgets {

/// Colors of one heatmap, and positions of its numbers on the color bar.
struct ColorScale {
  render::ColorMap map = render::ColorMap::values;
  bool dark = true;
  ColorLimits ends;

  bool is_logarithmic() const { return ends.least > 0 && map != render::ColorMap::mask; }
  Rgb color(double number) const;
  /// Returns the position of a number on the bar, 0 … 1 from low to high, clamped.
  double share(double number) const;
  /// Returns the number at a position on the bar.
  double number_at(double share) const;
};

/// Returns the color map that the user chose for a kind of numbers.
render::ColorMap chosen_map(const ColorChoice& colors, core::attention::Coloring coloring);

/// Draws a color bar with an end value at either side, starting at left_middle; returns its width.
float draw_plain_bar(const Frame& frame, const ColorScale& scale, ImVec2 left_middle, float width);

/// Returns the width of the link that toggles logarithmic colors; 0 if it is not offered.
float scale_link_width(const Frame& frame, Stage stage, std::size_t head);

void draw_scale_link(const Frame& frame, const std::string& place, ImVec2 right_middle);

/// Returns the label of an end of a range: whole numbers without decimals, others with significant ones.
std::string end_text(double value);

/// Numbers of a heatmap: a matrix, or a stage that is not copied to read a few of its cells.
class HeatmapNumbers {
 public:
  explicit HeatmapNumbers(const arma::mat& matrix)
      : n_rows(matrix.n_rows), n_cols(matrix.n_cols), matrix_(&matrix) {}
  explicit HeatmapNumbers(const core::attention::StageMatrix& stage)
      : n_rows(stage.n_rows()), n_cols(stage.n_cols()), stage_(&stage) {}

  std::size_t n_rows, n_cols;
  double operator()(std::size_t row, std::size_t column) const {
    return matrix_ ? (*matrix_)(row, column) : (*stage_)(row, column);
  }
  /// Returns the whole matrix; computes it if it is not stored.
  operator const arma::mat&() const {
    return matrix_ ? *matrix_ : **stage_;
  }  // NOLINT(google-explicit-constructor)

 private:
  const arma::mat* matrix_ = nullptr;
  const core::attention::StageMatrix* stage_ = nullptr;
};

/// Numbers other than a stage's, drawn in the style of one; the pointers must outlive the drawing.
struct OtherNumbers {
  const arma::mat* numbers = nullptr;
  std::uint64_t version = 0;                       ///< changes whenever the numbers do
  ColorLimits ends;                                ///< of the colors
  const std::vector<std::string>* rows = nullptr;  ///< names next to the row indices
  const std::vector<std::string>* keys = nullptr;  ///< names above token columns, if not the displayed tokens
  const std::vector<std::string>* columns =
      nullptr;  ///< names above the columns instead of indices, or nullptr
  bool has_token_axes =
      false;  ///< rows and columns are the displayed tokens: masked cells and the pinned cross are marked
  /// The stage's numbers in another state, cell by cell: hovering and clicking refer to the live stage's
  /// cell, and the caller shows the tooltip.
  bool shows_stage = false;
  std::optional<core::attention::Coloring> coloring = {};  ///< instead of the stage's
  const arma::mat* visible = nullptr;                      ///< 0 = masked, instead of the live mask
  const arma::mat* kept = nullptr;                         ///< 0 = dropped, or nullptr
  const ValueRange* number_range = nullptr;                ///< value range of the numbers, if known
};

/// Labels above the columns of a heatmap; tokens only for stages with one column per token.
enum class ColumnLabels { none, indices, tokens };

/// One heatmap: its numbers, size and surroundings.
struct Heatmap {
  std::string place;  ///< landmark and key of the picture: "strip/weights"
  Stage stage = Stage::weights;
  std::size_t head = 0;
  int width = 0, height = 0;  ///< of the picture in pixels
  float label_width = 0;      ///< room left of the picture for the rows' names; 0 = none
  bool row_tokens = true;     ///< else indices only
  ColumnLabels columns = ColumnLabels::tokens;
  bool has_vertical_bar = false;  ///< the color bar is right of the picture instead of below
  bool show_bar = true;
  bool show_numbers = true;  ///< where they fit
  std::size_t digits = 0;    ///< the first of digit_levels to try
  bool keeps_zero = false;   ///< numbers never lose the zero before the dot
  bool whole = false;        ///< shows the whole matrix, regardless of zoom
  float gutter_width = 0;    ///< of each column of row sums or entropies right of the picture; 0 = none
  const OtherNumbers* other =
      nullptr;  ///< instead of the stage's own; cells can be pinned only if they are of the stage
  bool of_gradient = false;  ///< shows the gradient of the stage; see gradient_numbers()
};

/// Returns whether maps of a stage show its gradient: that of a number is shown, and not only values.
bool shows_gradient(const Frame& frame, Stage stage);

/// Returns the gradient of a stage in the style of its map, with signed colors.
OtherNumbers gradient_numbers(const Frame& frame, Stage stage, std::size_t head);

/// Return the heights and widths around the picture, in pixels.
float column_label_height(const Frame& frame, const Heatmap& map);

float bar_room(const Frame& frame, const Heatmap& map);

/// Returns the factor by which text is larger than the display scale alone; cells grow with it.
float text_scale(const Frame& frame);

/// Returns a length around the cells in whole pixels, scaled with the text.
float scaled_with_text(const Frame& frame, float length);

/// Returns the length of n equal cells of whole pixels in a room, each at most the largest; where they would
/// be smaller than the least, cells that fill the room.
int cells_length(float room, std::size_t n, float largest, float least = 1);

/// How the numbers of a map are written.
struct DigitLevel {
  int decimals = 0;    ///< at most
  bool bare = false;   ///< without the zero before the dot, if all numbers are below 1
  bool small = false;  ///< in a smaller font
};

/// Ways to write the numbers of a map: narrower cells take a later one, and after the last have no numbers.
inline constexpr std::array digit_levels{DigitLevel{4},
                                         DigitLevel{3},
                                         DigitLevel{2},
                                         DigitLevel{2, true},
                                         DigitLevel{2, true, true},
                                         DigitLevel{1, true},
                                         DigitLevel{1, true, true}};

/// What the numbers of a map need in its cells.
struct DigitNeeds {
  core::text::NumberExtents extents;
  bool has_bare = false;   ///< all are below 1, also when rounded
  bool is_weight = false;  ///< keeps its zero in the larger font
  bool is_bare(const DigitLevel& level) const {
    return has_bare && level.bare && (level.small || !is_weight) && extents.decimals > 0;
  }
};

/// Returns what the numbers of a stage, or of its gradient, need; for very large stages, from the value range
/// alone.
DigitNeeds digit_needs(const Frame& frame, Stage stage, std::size_t head, bool of_gradient = false);

/// Returns the width of cells for numbers that are written in that way.
float cell_width_for(const Frame& frame, const DigitNeeds& needs, const DigitLevel& level);

/// Draws the picture with labels, numbers, marks and bar; its labels start at top_left.
///
/// Hovering previews a cell, a click pins or unpins it, the wheel zooms, and dragging pans.
void draw_heatmap(const Frame& frame, const Heatmap& map, ImVec2 top_left);

/// Draws the picture alone, without labels or bar, at a position on the screen.
void draw_picture(const Frame& frame, const Heatmap& map, ImVec2 corner);

/// Returns the number of gutters right of a heatmap: row sums and, for weights, their entropy.
int gutter_count(Stage stage);

/// Returns a stage as it was before the last edit, of the same shape, or nullptr.
const core::attention::StageMatrix* previous_numbers(const Frame& frame, Stage stage, std::size_t head);

/// Returns how a heatmap's numbers are colored.
core::attention::Coloring coloring_of(const Heatmap& map);

/// Returns the ends of a stage's colors as the user chose them.
ColorLimits color_limits(const Frame& frame, Stage stage, std::size_t head);

/// Returns those of all stages and heads, to lock them.
std::map<std::pair<Stage, std::size_t>, ColorLimits> all_color_ends(const Frame& frame);

}  // namespace app::widgets
