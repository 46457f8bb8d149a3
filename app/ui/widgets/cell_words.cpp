#include "app/ui/widgets/cell_words.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "app/session/navigation.hpp"
#include "app/theme/imgui_compat.hpp"
#include "core/base/text.hpp"
#include "core/graph/visible.hpp"
#include "core/graph/words.hpp"

namespace app::widgets {

using core::attention::Stage;

namespace {

namespace ex = core::explain;

using ex::Operand;

void draw_tooltip(const Frame& frame, const Operand& operand) {
  const auto* stage = std::get_if<Stage>(&operand.place->source);
  const bool learned = !stage;
  std::string words = plain_name(*operand.place);
  if (stage)
    words += " (" +
             quoted_token(
                 row_tokens(core::attention::info(*stage), frame.displayed.sequence())[operand.place->row]) +
             ")";
  ImGui::BeginTooltip();
  platform::push_font(frame.fonts.sans14);
  ImGui::TextUnformatted(words.c_str());
  platform::push_font(frame.fonts.mono14);
  ImGui::TextUnformatted(display_number(operand.value).c_str());
  ImGui::PopFont();
  ImGui::PushStyleColor(ImGuiCol_Text, vec(frame.palette.dim));
  ImGui::TextUnformatted(learned ? "click to edit it" : "click to see how it is computed");
  ImGui::PopStyleColor();
  ImGui::PopFont();
  ImGui::EndTooltip();
}

/// Draws an operand right-aligned in a column that begins at left_middle; returns the column's right end.
///
/// An operand with a place is a link of that name: a click pins its cell, or puts the edit cursor on a
/// parameter.
float draw_operand(const Frame& frame, const std::string& name, const Operand& operand, ImVec2 left_middle,
                   float width) {
  ImFont* mono = frame.fonts.mono14;
  const std::string text = inspector_text(operand.value);
  const ImVec2 right{left_middle.x + std::max(width, text_width(mono, text)), left_middle.y};
  if (!operand.place) {
    draw_text(mono, right, Align::right_middle, frame.palette.text, text);
  } else {
    if (link(frame, name, mono, right, Align::right_middle, frame.palette.operand, text))
      go_to_source(frame, *operand.place);
    if (ImGui::IsItemHovered()) draw_tooltip(frame, operand);
  }
  return right.x;
}

using core::attention::Columns;
using core::attention::StageInfo;
using std::to_string;

std::string relation(Stage stage) {
  switch (stage) {
    case Stage::scores:
    case Stage::scaled_scores:
    case Stage::masked_scores:
      return " as query, key ";
    case Stage::mask:
      return " may attend to ";
    default:
      return " attends to ";
  }
}

std::string mask_reason(const Frame& frame, const CellRef& cell) {
  return core::explain::describe_visibility(frame.displayed.model, frame.displayed.look.sequence, cell.row,
                                            cell.column);
}

/// Returns whether the mask replaced a masked score, by −∞ or by a large negative number.
bool is_masked_score(const Frame& frame, double value) {
  using core::attention::MaskMethod;
  const auto method = frame.displayed.model.mask.method;
  return method == MaskMethod::negative_infinity ? value == -arma::datum::inf
                                                 : method == MaskMethod::large_negative;
}

/// Returns why a value is NaN; stages after the weights are NaN because the weights are.
std::string nan_reason(const Frame& frame, const CellRef& cell) {
  const core::attention::Trace& trace = frame.displayed.trace;
  const bool is_fully_masked =
      cell.row < trace.at(Stage::mask).n_rows() && arma::accu(trace.at(Stage::mask).row(cell.row)) == 0;
  const auto& model = frame.displayed.model;
  const bool of_weights = cell.stage >= Stage::unmasked_weights;
  if (of_weights && is_fully_masked && model.mask.empty_rows == core::attention::EmptyRows::nan &&
      !model.given.find(Stage::weights))
    return core::attention::info(cell.stage).columns == Columns::tokens
               ? "NaN: this query attends to no key, so its softmax is 0/0"
               : "NaN: its row of weights is 0/0";
  if (cell.stage == Stage::unmasked_weights || cell.stage == Stage::weights) {
    const bool masked = frame.displayed.has(Stage::masked_scores);
    const auto& scores = trace.at(masked ? Stage::masked_scores : Stage::scaled_scores, cell.head);
    bool all_minus_infinity = scores.n_cols() > 0;
    for (std::size_t j = 0; j < scores.n_cols() && all_minus_infinity; ++j)
      all_minus_infinity = scores(cell.row, j) == -arma::datum::inf;
    if (all_minus_infinity) return "NaN: every score of this query is −∞, so its softmax is 0/0";
  }
  return "NaN: one of its operands is NaN, or −∞ is combined with ∞ or 0";
}

std::string reason(const Frame& frame, const CellRef& cell, double value) {
  const StageInfo& stage = core::attention::info(cell.stage);
  if (frame.displayed.model.given.find(
          core::explain::given_cell_address(frame.displayed.model, frame.displayed.look.sequence, cell)))
    return "overridden";
  if (frame.displayed.model.given.find(cell.stage)) return "overridden, not computed";
  if (std::isnan(value)) return nan_reason(frame, cell);
  if (stage.columns != Columns::tokens) return "";
  const bool is_masked = frame.displayed.trace.at(Stage::mask)(cell.row, cell.column) == 0;
  switch (cell.stage) {
    case Stage::mask:
      return mask_reason(frame, cell);
    case Stage::masked_scores:
      return is_masked && is_masked_score(frame, value) ? mask_reason(frame, cell) : "";
    case Stage::zeroed_weights:
    case Stage::weights:
      return is_masked && value == 0 ? mask_reason(frame, cell) : "";
    case Stage::dropout_mask:
    case Stage::dropped_weights: {
      const double factor = frame.displayed.trace.at(Stage::dropout_mask, cell.head)(cell.row, cell.column);
      const bool is_weight = cell.stage == Stage::dropped_weights;
      if (is_masked && is_weight &&
          frame.displayed.trace.at(Stage::weights, cell.head)(cell.row, cell.column) == 0)
        return mask_reason(frame, cell);
      const bool on_scores = frame.displayed.model.dropout.place != core::attention::DropoutPlace::weights;
      if (is_weight && on_scores) return "dropout was applied to the scores, not the weights";
      if (factor == 0) return "dropped";
      return factor == 1 ? "" : "kept, × " + number_text(factor);
    }
    default:
      return "";
  }
}

/// Returns a token with its index; if its name is its index, `kind` with the index.
std::string token_with_index(const std::string& token, const char* kind, std::size_t index) {
  const std::string number = to_string(index);
  return (token == number ? kind : quoted_token(token)) + " " + number;
}

}  // namespace

void go_to_source(const Frame& frame, const core::explain::SourceCell& place) {
  if (const auto* stage = std::get_if<Stage>(&place.source)) {
    frame.commands.add(FollowCell{{*stage, place.head, place.row, place.column}});
    return;
  }
  frame.commands.add(MoveEditCursor{std::get<ex::MatrixName>(place.source), place.row, place.column});
}

std::string plain_name(const core::explain::SourceCell& place) {
  std::string words = ex::name(place);
  std::erase(words, '_');
  return words;
}

std::string head_words(const core::attention::Model& model, Stage stage, std::size_t head) {
  if (!core::attention::info(stage).per_head) return "";
  if (core::attention::n_matrices(model, stage) == model.n_heads) return "head " + to_string(head);
  const std::size_t group = core::attention::matrix_of_head(model, stage, head);
  std::vector<std::string> heads;
  for (std::size_t h = 0; h < model.n_heads; ++h)
    if (core::attention::matrix_of_head(model, stage, h) == group) heads.push_back(to_string(h));
  return fmt::format("group {} (heads {})", group, core::text::joined(heads, ", "));
}

std::string stage_title(const Frame& frame, Stage stage) {
  if (stage == Stage::embeddings && frame.pending.full_model) return "Layer input";
  // Keys that a causal mask hides are of the same text.
  if (stage == Stage::key_embeddings && frame.displayed.model.mask.causal) return "Cache (previous tokens)";
  return core::attention::info(stage).title;
}

std::string stage_formula(const Frame& frame, Stage stage, bool brief) {
  if (stage != Stage::embeddings || !frame.pending.full_model)
    return core::attention::formula_of(frame.displayed.graph, frame.displayed.model,
                                       core::attention::info(stage), brief);
  return frame.pending.full_model->model->description().layer_input;
}

double cell_value(const Frame& frame, const CellRef& cell) {
  return frame.displayed.trace.at(cell.stage, cell.head)(cell.row, cell.column);
}

CellDescription describe_cell(const Frame& frame, const CellRef& cell) {
  const StageInfo& stage = core::attention::info(cell.stage);
  const core::attention::Sequence& sequence = frame.displayed.sequence();
  CellDescription words;
  words.title = stage.one;
  const std::string& subject = row_tokens(stage, sequence)[cell.row];
  words.subject = quoted_token(subject);
  std::string head = head_words(frame.displayed.model, cell.stage, cell.head);
  if (!head.empty()) head += " · ";
  if (stage.columns == Columns::tokens) {
    words.relation = relation(cell.stage);
    const bool is_same = cell.row == cell.column && !frame.displayed.model.has_key_embeddings();
    words.object = is_same ? "itself" : quoted_token(sequence.keys()[cell.column]);
    words.place = fmt::format("{}query {} → key {}", head, cell.row, cell.column);
  } else if (stage.columns == Columns::features) {
    words.relation = ", column " + to_string(cell.column);
    words.place = fmt::format("{}row {}, column {}", head, cell.row, cell.column);
  } else {
    words.relation = ", the sum of its row";
    words.place = fmt::format("{}query {}", head, cell.row);
  }
  words.heading = words.object.empty()
                      ? token_with_index(subject, "row", cell.row) + words.relation
                      : token_with_index(subject, "query", cell.row) + " → " +
                            token_with_index(sequence.keys()[cell.column], "key", cell.column);
  words.reason = reason(frame, cell, cell_value(frame, cell));
  return words;
}

std::string spoken_words(const Frame& frame) {
  std::string words = frame.message.text;
  if (const auto& cell = frame.displayed.selection.pinned) {
    const CellDescription of = describe_cell(frame, *cell);
    const std::string value = core::text::number_text(cell_value(frame, *cell));
    words =
        fmt::format("{}: {}{}{}, {} ({}){}{}{}", of.title, of.subject, of.relation, of.object, value,
                    of.place, of.reason.empty() ? "" : ", " + of.reason, words.empty() ? "" : ". ", words);
  }
  return words;
}

void draw_cell_subject(const Frame& frame, ImFont* font, ImVec2 at, Align align, float width,
                       const CellDescription& words) {
  const float right = at.x + width;
  const auto say = [&](const std::string& piece, Rgb color) {
    const std::string fitting = shortened(font, piece, std::max(1.0f, right - at.x));
    at.x += draw_text(font, at, align, color, fitting);
  };
  say(words.subject, frame.palette.text);
  say(words.relation, frame.palette.dim);
  if (!words.object.empty()) say(words.object, frame.palette.text);
}

void draw_cell_tooltip(const Frame& frame, const CellRef& cell, const std::string& remark) {
  const CellDescription words = describe_cell(frame, cell);
  ImGui::BeginTooltip();
  platform::push_font(frame.fonts.sans14);
  ImGui::TextUnformatted(words.heading.c_str());
  ImGui::PushStyleColor(ImGuiCol_Text, vec(frame.palette.dim));
  const std::string whose = head_words(frame.displayed.model, cell.stage, cell.head);
  const std::string kind = words.title + (whose.empty() ? "" : ", " + whose);
  ImGui::TextUnformatted(kind.c_str());
  ImGui::PopStyleColor();
  platform::push_font(frame.fonts.mono14);
  ImGui::TextUnformatted(display_number(cell_value(frame, cell)).c_str());
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

std::string masked_reason(const Frame& frame, std::size_t query, std::size_t key) {
  using core::attention::VisibilityReason;
  const auto& model = frame.displayed.model;
  switch (core::attention::visibility(model, frame.displayed.look.sequence, query, key).reason) {
    case VisibilityReason::by_hand:
      return "masked by hand";
    case VisibilityReason::by_window:
      return "masked: outside its sliding window";
    case VisibilityReason::by_document:
      return "masked: other document";
    case VisibilityReason::by_padding:
      return "masked: padding";
    default:
      break;
  }
  if (static_cast<std::int64_t>(key) > core::attention::aligned_query_position(model, query))
    return "masked: later than " + model.sequences[frame.displayed.look.sequence].tokens[query];
  return "masked by the shifted causal mask";
}

namespace {

namespace ex = core::explain;

using ex::LineForm;
using ex::StepLine;

constexpr std::size_t max_terms = 6;

/// Symbols before, between and after the operands of a line.
struct Signs {
  const char *before, *between, *after;
};

Signs signs(LineForm form) {
  switch (form) {
    case LineForm::words:
    case LineForm::single:
      break;
    case LineForm::product:
      return {"", " · ", ""};
    case LineForm::factor:
      return {"", " × ", ""};
    case LineForm::division:
      return {"", " ÷ ", ""};
    case LineForm::addition:
      return {"", " + ", ""};
    case LineForm::exponential:
      return {"exp(", " − ", ")"};
  }
  return {"", "", ""};
}

/// Column widths of one step, so that its terms are aligned.
struct ColumnWidths {
  float label = 0, a = 0, b = 0;
};

ColumnWidths columns_of(const Pen& pen, const ex::Step& step, const std::vector<std::size_t>& shown) {
  ImFont* mono = pen.frame.fonts.mono14;
  const auto& sequence = pen.frame.displayed.sequence();
  ColumnWidths columns;
  float signs_width = 0, value = 0;
  for (const std::size_t k : shown) {
    const StepLine& line = step.lines[k];
    if (line.role != StepLine::term) continue;
    const Signs s = signs(line.form);
    const std::string label = ex::words(line.label, sequence);
    if (!label.empty())
      columns.label =
          std::max(columns.label, text_width(pen.frame.fonts.sans14, label) + pen.frame.metrics.px(10));
    columns.a = std::max(columns.a, text_width(mono, inspector_text(line.a.value)));
    if (line.form != LineForm::single)
      columns.b = std::max(columns.b, text_width(mono, inspector_text(line.b.value)));
    signs_width = std::max(signs_width, text_width(mono, std::string(s.before) + s.between + s.after));
    value = std::max(value, text_width(mono, inspector_text(line.value)));
  }
  const float room = pen.right - pen.left - pen.frame.metrics.px(18 + 10);
  const float left = room - columns.a - columns.b - signs_width - value;
  // Two letters and an ellipsis do not identify a token.
  columns.label = columns.label <= left ? columns.label : left < pen.frame.metrics.px(44) ? 0 : left;
  return columns;
}

float draw_sign(const Pen& pen, float x, const char* sign) {
  draw_text(pen.frame.fonts.mono14, {x, pen.y}, Align::left_middle, pen.frame.palette.dim, sign);
  return x + text_width(pen.frame.fonts.mono14, sign);
}

void draw_line(Pen& pen, const std::string& name, const StepLine& line, const ColumnWidths& widths) {
  const Frame& frame = pen.frame;
  const float indent = pen.left + frame.metrics.px(18);
  const bool is_term = line.role == StepLine::term;
  if (line.role == StepLine::total) {
    draw_rect({pen.right - frame.metrics.px(60), std::round(pen.y) + frame.metrics.px(1)},
              {pen.right, std::round(pen.y) + frame.metrics.px(1) + 1}, frame.palette.strong_line);
    pen.skip(2);
  }
  pen.skip(9);
  float x = indent;
  const std::string label = ex::words(line.label, frame.displayed.sequence());
  const float room = is_term ? widths.label : text_width(frame.fonts.sans14, label) + frame.metrics.px(10);
  if (!label.empty() && room > 0) {
    // If "column 93" does not fit, the number says more than the word.
    const float fits = room - frame.metrics.px(8);
    const bool is_number =
        line.label.kind == ex::Label::column && text_width(frame.fonts.sans14, label) > fits;
    draw_text(frame.fonts.sans14, {x, pen.y}, Align::left_middle, frame.palette.dim,
              shortened(frame.fonts.sans14, is_number ? std::to_string(line.label.index) : label, fits));
    x += room;
  }
  if (line.form == LineForm::single) {
    draw_operand(pen.frame, name + "/a", line.a,
                 {pen.right - text_width(frame.fonts.mono14, inspector_text(line.a.value)), pen.y}, 0);
    return pen.skip(9);
  }
  if (!line.words.empty()) {
    draw_text(frame.fonts.sans14, {x, pen.y}, Align::left_middle, frame.palette.dim, line.words);
  } else {
    const Signs s = signs(line.form);
    x = draw_sign(pen, x, s.before);
    x = draw_operand(pen.frame, name + "/a", line.a, {x, pen.y}, is_term ? widths.a : 0);
    x = draw_operand(pen.frame, name + "/b", line.b, {draw_sign(pen, x, s.between), pen.y},
                     is_term ? widths.b : 0);
    draw_sign(pen, x, s.after);
  }
  draw_text(frame.fonts.mono14, {pen.right, pen.y}, Align::right_middle, frame.palette.text,
            inspector_text(line.value));
  pen.skip(9);
}

void draw_title(Pen& pen, std::size_t number, const ex::Step& step) {
  const Frame& frame = pen.frame;
  ImFont *title = frame.fonts.sans15, *formula = frame.fonts.sans14;
  pen.skip(9);
  draw_text(frame.fonts.mono12, {pen.left, pen.y}, Align::left_middle, frame.palette.faint,
            std::to_string(number));
  float x = pen.left + frame.metrics.px(18);
  draw_glossary_line(frame, title, frame.palette.text, {x, pen.y}, step.title);
  const float after_title = x + text_width(title, step.title) + frame.metrics.px(10);
  if (after_title + formula_width(formula, step.formula) <= pen.right)
    x = after_title;
  else
    pen.skip(18);
  draw_formula(formula, {x, std::round(pen.y - platform::font_size(formula) * 0.56f)}, frame.palette.dim,
               step.formula);
  pen.skip(11);
}

/// Draws the link "and 58 others" with their sum, or "show fewer", which unfolds or folds them.
void draw_more(Pen& pen, std::size_t number, const std::string& words, std::optional<double> rest) {
  const Frame& frame = pen.frame;
  pen.skip(9);
  const std::string name = fmt::format("inspector/step/{}/more", number);
  if (link(frame, name, frame.fonts.sans14, {pen.left + frame.metrics.px(18), pen.y}, Align::left_middle,
           frame.palette.accent, words))
    frame.commands.add(set<&Selection::unfolded>(
        frame.pending.selection.unfolded == number ? std::nullopt : std::optional(number)));
  if (rest)
    draw_text(frame.fonts.mono14, {pen.right, pen.y}, Align::right_middle, frame.palette.text,
              inspector_text(*rest));
  pen.skip(9);
}

void draw_step(Pen& pen, std::size_t number, const ex::Step& step) {
  const Frame& frame = pen.frame;
  draw_title(pen, number + 1, step);
  const ex::Folded folded = ex::fold(step, max_terms);
  const bool unfolded = folded.others > 0 && frame.displayed.selection.unfolded == number;
  const ex::Folded shown = unfolded ? ex::fold(step, step.lines.size()) : folded;
  const ColumnWidths widths = columns_of(pen, step, shown.lines);
  bool drew_more_link = folded.others == 0;
  for (const std::size_t k : shown.lines) {
    const bool past_terms = step.lines[k].role != StepLine::term;
    if (past_terms && !drew_more_link) {
      draw_more(pen, number, unfolded ? "show fewer" : fmt::format("and {} others", folded.others),
                unfolded ? std::nullopt : std::optional(folded.rest));
      drew_more_link = true;
    }
    const float height = frame.metrics.px(18);
    if (unfolded && !past_terms && !ImGui::IsRectVisible({pen.left, pen.y}, {pen.right, pen.y + height}))
      pen.skip(18);  // only measured, as there may be thousands of lines
    else
      draw_line(pen, fmt::format("inspector/step/{}/line/{}", number, k), step.lines[k], widths);
  }
  pen.skip(8);
}

}  // namespace

void draw_cell_steps(Pen& pen, const ex::Explanation& explanation) {
  for (std::size_t s = 0; s < explanation.steps.size(); ++s) draw_step(pen, s, explanation.steps[s]);
}

float cell_steps_height(const ex::Explanation& explanation) {
  constexpr float title = 46, line = 18, below = 10;
  float height = 0;
  for (const ex::Step& step : explanation.steps) {
    const ex::Folded folded = ex::fold(step, max_terms);
    height += title + line * static_cast<float>(folded.lines.size() + (folded.others > 0)) + below;
  }
  return height;
}

}  // namespace app::widgets
