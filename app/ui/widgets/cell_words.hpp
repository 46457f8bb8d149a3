#pragma once

#include <string>

#include "app/ui/frame.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "core/graph/explain.hpp"

namespace app::widgets {

/// What a cell is, in words; every text is one line.
struct CellWords {
  std::string title;     ///< "Weight"
  std::string subject;   ///< "journey", the token of the row
  std::string relation;  ///< " attends to ", or what the column is
  std::string object;    ///< "Your", or ""
  std::string heading;   ///< "journey 1 → Your 0", or "query 1 → key 0" of tokens that are numbered alone
  std::string place;     ///< "head 0 · query 1 → key 0"
  std::string reason;  ///< why the value is what it is when that is special: "hidden: key 3 comes after query
                       ///< 1", or ""
};

/// Whose numbers a stage of a head has: "head 1", "group 0 (heads 0, 1)"; "" when they are everybody's.
std::string head_words(const core::attention::Model& model, Stage stage, std::size_t head);

/// The title of a stage, and its formula: X of a layer of a whole model is made of the residual stream.
std::string stage_title(const Frame& frame, Stage stage);

std::string stage_formula(const Frame& frame, Stage stage, bool brief);

/// The number in a cell.
double cell_value(const Frame& frame, const CellRef& cell);

CellWords cell_words(const Frame& frame, const CellRef& cell);

/// The tooltip of a hovered cell: tokens, place, the value in full and the reason; a remark as the last line,
/// or "".
void draw_cell_tooltip(const Frame& frame, const CellRef& cell, const std::string& remark = "");

/// Why a query does not see a key, in a few words: "hidden: later than journey".
std::string why_hidden(const Frame& frame, std::size_t query, std::size_t key);

/// Draws a cell worked out, in numbered steps.
///
/// Pressing an operand pins its cell, or puts the edit cursor on it when it is a learned number; of long sums
/// the largest terms are shown, and all of them on demand. Landmarks: "inspector/step/0/line/2/a",
/// "inspector/step/0/more".
void draw_worked_cell(Pen& pen, const core::explain::Explanation& explanation);

/// The room that it takes at most as long as its sums are folded, from top to bottom, at scale 1.
float worked_cell_height(const core::explain::Explanation& explanation);

}  // namespace app::widgets
