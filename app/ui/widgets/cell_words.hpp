#pragma once

#include <string>

#include "app/ui/frame.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "core/graph/explain.hpp"

namespace app::widgets {

/// Description of a cell; every text is one line.
struct CellDescription {
  std::string title;     ///< "Weight"
  std::string subject;   ///< "journey", the token of the row
  std::string relation;  ///< " attends to ", or a description of the column
  std::string object;    ///< "Your", or ""
  std::string heading;   ///< "journey 1 → Your 0", or "query 1 → key 0" of unnamed tokens
  std::string place;     ///< "head 0 · query 1 → key 0"
  std::string reason;    ///< of a special value: "masked: key 3 comes after query 1"; or ""
};

/// Returns the heads that share a stage's matrix: "head 1", "group 0 (heads 0, 1)"; "" without heads.
std::string head_words(const core::attention::Model& model, Stage stage, std::size_t head);

/// Return the title and the formula of a stage; in a whole model, X is computed from the residual stream.
std::string stage_title(const Frame& frame, Stage stage);

std::string stage_formula(const Frame& frame, Stage stage, bool brief);

/// Returns the number in a cell.
double cell_value(const Frame& frame, const CellRef& cell);

CellDescription describe_cell(const Frame& frame, const CellRef& cell);

/// Returns the pinned cell in a sentence, "Weight: journey attends to Your, 0.3403 (head 0 · query 1 → key
/// 0)", and the message at the bottom of the window, for those who hear the window.
std::string spoken_words(const Frame& frame);

/// Draws "journey attends to Your", shortened to a width.
void draw_cell_subject(const Frame& frame, ImFont* font, ImVec2 at, Align align, float width,
                       const CellDescription& words);

/// Draws the tooltip of a hovered cell: tokens, place, full value and reason, and a remark as the last line,
/// or "".
void draw_cell_tooltip(const Frame& frame, const CellRef& cell, const std::string& remark = "");

/// Returns why a key is masked for a query, in a few words: "masked: later than journey".
std::string masked_reason(const Frame& frame, std::size_t query, std::size_t key);

/// Returns the name of a number without subscripts: "q1[0]", "Wq[2][1]", "Weights[1][0]".
std::string plain_name(const core::explain::SourceCell& place);

/// Goes to a number: pins its cell, or puts the edit cursor on it if it is a parameter.
void go_to_source(const Frame& frame, const core::explain::SourceCell& place);

/// Draws the computation of a cell in numbered steps.
///
/// A click on an operand pins its cell, or puts the edit cursor on it if it is a parameter; long sums show
/// their largest terms, and all of them on demand. Landmarks: "inspector/step/0/line/2/a",
/// "inspector/step/0/more".
void draw_cell_steps(Pen& pen, const core::explain::Explanation& explanation);

/// Returns the maximum height of these steps while their sums are folded, at scale 1.
float cell_steps_height(const core::explain::Explanation& explanation);

}  // namespace app::widgets
