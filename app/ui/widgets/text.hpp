#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "app/ui/frame.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "core/base/number.hpp"
#include "core/graph/stage_matrix.hpp"
#include "core/lessons/lessons.hpp"

namespace app::widgets {

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

using core::text::cell_text;
using core::text::CellRange;
using core::text::choose_format;
using core::text::fixed;
using core::text::number_text;
using core::text::NumberFormat;
using core::text::scientific;
using core::text::share_text;
using core::text::told_number;
using core::text::unit_for;
using core::text::unit_words;

/// A token for display: blanks at its ends as "·", line ends as "⏎", tabs as "→".
std::string visible_token(std::string_view token);
/// The same in quotation marks.
std::string quoted_token(std::string_view token);

/// A count with its thousands set apart: "1,014".
std::string grouped(std::size_t count);

/// A number with its sign: "+5.67", "−4.89".
std::string signed_text(double value, int decimals);

/// Where a line of a font begins so that its letters stand in the middle of a box of that height.
float centred_y(ImFont* font, float top, float height);

/// Draws plain text with its top left corner at pos.
void draw_text(ImFont* font, ImVec2 pos, Rgb color, std::string_view text);
/// Draws plain text that ends at right.
void draw_text_right(ImFont* font, float right, float y, Rgb color, std::string_view text);
/// Draws text that is at most width wide; shortened, it is whole in a tooltip.
void draw_text_within(ImFont* font, ImVec2 pos, float width, Rgb color, const std::string& text);

/// Text broken at a blank into at most two lines of that width, the second shortened.
void draw_two_lines(ImFont* font, ImVec2 pos, float width, float pitch, Rgb color, const std::string& text);

/// Text broken at the width, with the pitch of prose; returns how much room it took.
ImVec2 draw_prose(ImFont* font, ImVec2 left_top, float width, Rgb color, std::string_view text);
/// The same as an item of the window.
void paragraph(ImFont* font, Rgb color, float width, std::string_view text);

/// The capitals over a section, with a remark at the right: an item as high as it needs.
void section_heading(const Frame& frame, float width, const char* name, const std::string& remark = "");

/// A tooltip over the last item, for disabled items too.
void tooltip(const std::string& text);

/// Prose broken at the width, in which terms of the glossary are underlined and explained on hover; an item
/// as high as it needs. Each term is underlined where it first stands.
void glossed_text(const Frame& frame, ImFont* font, Rgb color, float width, const std::string& text);

/// One line that begins there, drawn as it is with its terms underlined and explained on hover.
void glossed_line(const Frame& frame, ImFont* font, Rgb color, ImVec2 left_middle, const std::string& text);

/// The term that explains a stage.
const core::lessons::Term* term_of(Stage stage);
/// A term and its meaning, with what can be done there as the last line, as a tooltip.
void explain_term(const Frame& frame, const core::lessons::Term& term, const std::string& remark = "");

/// How high it will be.
float glossed_height(const Frame& frame, ImFont* font, float width, const std::string& text);

}  // namespace app::widgets
