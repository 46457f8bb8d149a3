#include "app/ui/widgets/cell_words.hpp"

#include <cmath>
#include <cstdint>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/widgets/number_text.hpp"
#include "core/base/text.hpp"
#include "core/graph/sight_words.hpp"
#include "core/graph/visible.hpp"

namespace app::widgets {
namespace {

using core::attention::Columns;
using core::attention::StageInfo;
using std::to_string;

std::string relation(Stage stage) {
  switch (stage) {
    case Stage::scores:
    case Stage::scaled_scores:
    case Stage::masked_scores:
      return " asks, the key is ";
    case Stage::mask:
      return " may see ";
    case Stage::dropout_mask:
      return " and the draw for ";
    default:
      return " listens to ";
  }
}

std::string hidden_reason(const Frame& frame, const CellRef& cell) {
  return core::explain::sight_words(frame.shown.model, frame.shown.look.sequence, cell.row, cell.column);
}

/// Whether a masked score is what the mask put there.
bool is_masked_before(const Frame& frame, double value) {
  using core::attention::MaskMethod;
  const auto method = frame.shown.model.mask.method;
  return method == MaskMethod::negative_infinity ? value == -arma::datum::inf
                                                 : method == MaskMethod::large_negative;
}

/// Why a number is none; what lies after the weights is not a number because they are not.
std::string nan_reason(const Frame& frame, const CellRef& cell) {
  const core::attention::Trace& trace = frame.shown.trace;
  const bool sees_nothing = cell.row < trace.mask.n_rows() && arma::accu(trace.mask.row(cell.row)) == 0;
  const auto& model = frame.shown.model;
  const bool of_weights = cell.stage >= Stage::unmasked_weights;
  if (of_weights && sees_nothing && model.mask.empty_rows == core::attention::EmptyRows::nan &&
      !model.given.find(Stage::weights))
    return core::attention::info(cell.stage).columns == Columns::tokens
               ? "not a number: this query may see no key, so its softmax is 0/0"
               : "not a number: its row of weights is 0/0";
  if (cell.stage == Stage::unmasked_weights || cell.stage == Stage::weights) {
    const bool masked = core::attention::info(Stage::masked_scores).present(model);
    const auto& scores =
        core::attention::info(masked ? Stage::masked_scores : Stage::scaled_scores).matrix(trace, cell.head);
    bool all_minus_infinity = scores.n_cols() > 0;
    for (std::size_t j = 0; j < scores.n_cols() && all_minus_infinity; ++j)
      all_minus_infinity = scores(cell.row, j) == -arma::datum::inf;
    if (all_minus_infinity) return "not a number: every score of this query is −∞, so its softmax is 0/0";
  }
  return "not a number, as one of the numbers that it is made of is none, or −∞ meets ∞ or 0";
}

std::string reason(const Frame& frame, const CellRef& cell, double value) {
  const StageInfo& stage = core::attention::info(cell.stage);
  if (frame.shown.model.given.find(
          core::explain::given_place(frame.shown.model, frame.shown.look.sequence, cell)))
    return "typed over";
  if (frame.shown.model.given.find(cell.stage)) return "given, not computed";
  if (std::isnan(value)) return nan_reason(frame, cell);
  if (stage.columns != Columns::tokens) return "";
  const bool hidden = frame.shown.trace.mask(cell.row, cell.column) == 0;
  switch (cell.stage) {
    case Stage::mask:
      return hidden_reason(frame, cell);
    case Stage::masked_scores:
      return hidden && is_masked_before(frame, value) ? hidden_reason(frame, cell) : "";
    case Stage::zeroed_weights:
    case Stage::weights:
      return hidden && value == 0 ? hidden_reason(frame, cell) : "";
    case Stage::dropout_mask:
    case Stage::dropped_weights: {
      const double factor = frame.shown.trace.heads[cell.head].dropout_mask(cell.row, cell.column);
      const bool is_weight = cell.stage == Stage::dropped_weights;
      if (hidden && is_weight && frame.shown.trace.heads[cell.head].weights(cell.row, cell.column) == 0)
        return hidden_reason(frame, cell);
      const bool on_scores =
          frame.shown.model.departures.dropout_place != core::attention::DropoutPlace::weights;
      if (is_weight && on_scores) return "the scores were dropped, not the weights";
      if (factor == 0) return "dropped";
      return factor == 1 ? "" : "kept, × " + number_text(factor);
    }
    default:
      return "";
  }
}

/// A token and its index; of tokens that are numbered alone, what it is and its index.
std::string named(const std::string& token, const char* kind, std::size_t index) {
  const std::string number = to_string(index);
  return (token == number ? kind : token) + " " + number;
}

}  // namespace

std::string head_words(const core::attention::Model& model, Stage stage, std::size_t head) {
  if (!core::attention::info(stage).per_head) return "";
  if (core::attention::n_matrices(model, stage) == model.n_heads) return "head " + to_string(head);
  const std::size_t group = core::attention::matrix_of_head(model, stage, head);
  std::vector<std::string> heads;
  for (std::size_t h = 0; h < model.n_heads; ++h)
    if (core::attention::matrix_of_head(model, stage, h) == group) heads.push_back(to_string(h));
  return "group " + to_string(group) + " (heads " + core::text::joined(heads, ", ") + ")";
}

double cell_value(const Frame& frame, const CellRef& cell) {
  return core::attention::info(cell.stage).matrix(frame.shown.trace, cell.head)(cell.row, cell.column);
}

CellWords cell_words(const Frame& frame, const CellRef& cell) {
  const StageInfo& stage = core::attention::info(cell.stage);
  const core::attention::Sequence& sequence = frame.shown.model.sequences[frame.shown.look.sequence];
  CellWords words;
  words.title = stage.one;
  words.subject = row_tokens(stage, sequence)[cell.row];
  std::string head = head_words(frame.shown.model, cell.stage, cell.head);
  if (!head.empty()) head += " · ";
  if (stage.columns == Columns::tokens) {
    words.relation = relation(cell.stage);
    words.object = sequence.keys()[cell.column];
    words.place = head + "query " + to_string(cell.row) + " → key " + to_string(cell.column);
  } else if (stage.columns == Columns::features) {
    words.relation = ", column " + to_string(cell.column);
    words.place = head + "row " + to_string(cell.row) + ", column " + to_string(cell.column);
  } else {
    words.relation = ", what is left of its row";
    words.place = head + "query " + to_string(cell.row);
  }
  words.heading = words.object.empty() ? named(words.subject, "row", cell.row) + words.relation
                                       : named(words.subject, "query", cell.row) + " → " +
                                             named(words.object, "key", cell.column);
  words.reason = reason(frame, cell, cell_value(frame, cell));
  return words;
}

void draw_cell_tooltip(const Frame& frame, const CellRef& cell, const std::string& remark) {
  const CellWords words = cell_words(frame, cell);
  ImGui::BeginTooltip();
  platform::push_font(frame.fonts.sans14);
  ImGui::TextUnformatted(words.heading.c_str());
  ImGui::PushStyleColor(ImGuiCol_Text, vec(frame.palette.dim));
  const std::string whose = head_words(frame.shown.model, cell.stage, cell.head);
  const std::string kind = words.title + (whose.empty() ? "" : ", " + whose);
  ImGui::TextUnformatted(kind.c_str());
  ImGui::PopStyleColor();
  platform::push_font(frame.fonts.mono14);
  ImGui::TextUnformatted(told_number(cell_value(frame, cell)).c_str());
  ImGui::PopFont();
  for (const std::string& line : {words.reason, remark}) {
    if (line.empty()) continue;
    ImGui::PushStyleColor(ImGuiCol_Text, vec(frame.palette.dim));
    ImGui::TextUnformatted(line.c_str());
    ImGui::PopStyleColor();
  }
  ImGui::PopFont();
  ImGui::EndTooltip();
}

std::string why_hidden(const Frame& frame, std::size_t query, std::size_t key) {
  using core::attention::Decided;
  const auto& model = frame.shown.model;
  switch (core::attention::sight(model, frame.shown.look.sequence, query, key).decided) {
    case Decided::by_hand:
      return "hidden by hand";
    case Decided::by_window:
      return "hidden: outside its window";
    case Decided::by_document:
      return "hidden: another document";
    case Decided::by_padding:
      return "hidden: padding";
    default:
      break;
  }
  if (static_cast<std::int64_t>(key) > core::attention::place_of_query(model, query))
    return "hidden: later than " + model.sequences[frame.shown.look.sequence].tokens[query];
  return "hidden by the edge of the mask";
}

}  // namespace app::widgets
