#include "app/ui/panels/inspector/inspector_panel.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/session/full_model_reading.hpp"
#include "app/session/navigation.hpp"
#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/gradient/gradient_panel.hpp"
#include "app/ui/panels/heads/heads_panel.hpp"
#include "app/ui/panels/inspector/inspector_sources.hpp"
#include "app/ui/widgets/cell_words.hpp"
#include "app/ui/widgets/fields.hpp"
#include "core/base/number.hpp"
#include "core/base/text.hpp"
#include "core/graph/matrices.hpp"
#include "core/graph/words.hpp"
#include "core/lessons/lessons.hpp"

namespace app::panels {

using core::attention::Stage;

namespace {

using core::attention::HeadMetric;
using core::attention::HeadMetricInfo;

void draw_figure(Pen& pen, const HeadMetricInfo& figure, const std::optional<double>& value) {
  const Frame& frame = pen.frame;
  const float middle = pen.y + frame.metrics.px(10), half = frame.metrics.px(5);
  const std::size_t n_tokens = frame.displayed.model.n_keys();
  const std::string number = figure_text(figure.figure, value, n_tokens),
                    widest = figure_text(figure.figure, 0.5, n_tokens);
  const float from = pen.left + frame.metrics.px(frame.metrics.compact ? 122 : 132),
              to = pen.right - std::max(frame.metrics.px(44),
                                        text_width(frame.fonts.mono13, widest) + frame.metrics.px(8));
  draw_text(frame.fonts.sans14, {pen.left, middle}, Align::left_middle, frame.palette.dim, figure.title);
  draw_rect({from, middle - half}, {to, middle + half}, frame.palette.control.rest);
  if (value && *value > 0) {
    const double share = std::min(*value, 1.0);
    const Rgb color = render::color_at(render::ColorMap::weights, frame.palette.dark, std::max(share, 0.15));
    draw_rect({from, middle - half}, {from + (to - from) * static_cast<float>(share), middle + half}, color);
  }
  draw_text(frame.fonts.mono13, {pen.right, middle}, Align::right_middle,
            value ? frame.palette.text : frame.palette.faint, number);
  frame.landmarks.mark(std::string("inspector/figure/") + figure.name, {pen.left, middle - half},
                       {pen.right, middle + half});
  pen.skip(21);
}

/// Draws the hovered, else the selected head: the tokens it attends to, and the similarity of the heads.
void draw_head(Pen& pen) {
  const Frame& frame = pen.frame;
  const std::size_t head = frame.displayed.selection.hovered_head.value_or(frame.displayed.look.head);
  const core::attention::HeadStatistics& facts = head_statistics(frame)[head];
  pen.skip(20);
  const std::string layer =
      frame.pending.full_model ? std::to_string(frame.pending.full_model->layer) + "." : "";
  pen.at_left(frame.fonts.sans19, frame.palette.text, "Head " + layer + std::to_string(head));
  const std::string entropy = facts.entropy_bits ? fixed(*facts.entropy_bits, 2) : "–";
  pen.at_right(frame.fonts.mono32, frame.palette.text, entropy);
  pen.skip(24);
  pen.at_left(frame.fonts.sans14, frame.palette.dim, "mean entropy of its rows, bits");
  pen.skip(6);
  pen.rule();
  draw_text(frame.fonts.sans13, {pen.right, pen.y + frame.metrics.px(8)}, Align::right_middle,
            frame.palette.faint,
            frame.displayed.model.dropout.active() && !frame.metrics.compact ? "mean weight, before dropout"
                                                                             : "mean weight");
  pen.heading("Attends to");
  for (const HeadMetricInfo& figure : core::attention::head_metrics())
    if (figure.figure != HeadMetric::entropy) draw_figure(pen, figure, facts.*figure.value);
  if (frame.displayed.trace.n_heads() > 1) draw_similarity(pen, head);
}

using core::editing::OverrideValue;

/// Parses a number, also one that is not finite: masked scores are −inf.
std::optional<double> parse_any_number(const std::string& text) {
  if (const auto number = read_number(text)) return number;
  return core::text::parse_number(text == "−inf" ? "-inf" : text);
}

/// Draws a field that overrides the value of the pinned cell, and a link that reverts it. Landmarks
/// "inspector/typed", "inspector/computed".
void draw_override_field(Pen& pen, const CellRef& cell) {
  const Frame& frame = pen.frame;
  if (frame.displayed.selection.pinned != cell || !can_be_overridden(cell.stage)) return;
  const core::attention::GivenCellAddress place =
      core::explain::given_cell_address(frame.displayed.model, frame.displayed.look.sequence, cell);
  const core::attention::GivenCell* typed = frame.displayed.model.given.find(place);
  const float middle = pen.y + frame.metrics.frame / 2 + frame.metrics.px(4), width = frame.metrics.px(96);
  draw_text(frame.fonts.sans14, {pen.left, middle}, Align::left_middle, frame.palette.dim,
            typed ? "overridden" : "override value (N)");
  const float x = pen.left + text_width(frame.fonts.sans14, "override value (N)") + frame.metrics.px(10);
  platform::move_to({x, pen.y + frame.metrics.px(4)});
  const std::string shown = typed ? core::text::number_text(typed->value) : "";
  const auto answer = text_field(frame, "inspector/typed", shown,
                                 {
                                     .width = width,
                                     .font = frame.fonts.mono13,
                                 });
  if (answer.text && !(answer.text->empty() && !typed)) {
    if (answer.text->empty())
      frame.commands.edit(OverrideValue{place, std::nullopt});
    else if (const auto number = parse_any_number(*answer.text))
      frame.commands.edit(OverrideValue{place, number});
    else
      report_invalid(frame, "override value", "a number", *answer.text);
  }
  if (typed && link(frame, "inspector/computed", frame.fonts.sans13, {pen.right, middle}, Align::right_middle,
                    frame.palette.accent, "revert"))
    frame.commands.edit(OverrideValue{place, std::nullopt});
  if (hovers({pen.left, pen.y}, {x, pen.y + frame.metrics.px(34)}))
    ImGui::SetTooltip("Replaces the computed number; what follows uses it. Empty: compute again.");
  pen.skip(34);
}

using core::transformer::ResidualElement;

std::string layer_words(const char* what, std::size_t layer) {
  return what + std::to_string(layer);
}

/// Draws how the input of the layer comes from the residual stream, through the norm.
void draw_stream_input(Pen& pen, const CellRef& cell, const ResidualElement& number) {
  const Frame& frame = pen.frame;
  const std::size_t layer = frame.pending.full_model->layer;
  if (layer == 0)
    pen.pair("token and position", inspector_text(number.entering));
  else if (pen.linked_pair("inspector/stream/before", layer_words("output of layer ", layer - 1),
                           inspector_text(number.entering)))
    go_to_layer(frame, layer - 1, {Stage::output, 0, cell.row, cell.column});
  if (const auto& norm = number.norm) {
    if (norm->mean != 0) pen.pair("− mean of its row", inspector_text(norm->mean));
    pen.pair(norm->mean != 0 ? "÷ standard deviation of its row" : "÷ root mean square",
             inspector_text(norm->divisor));
    pen.pair("× weight of the norm", inspector_text(norm->factor));
    if (norm->bias != 0) pen.pair("+ bias of the norm", inspector_text(norm->bias));
    pen.pair("= layer input", inspector_text(number.input));
  }
  if (cell_value(frame, cell) != number.input)
    pen.prose("Overridden: the model computes " + inspector_text(number.input) + " here.", frame.palette.dim);
}

/// Draws the residual stream after the layer, with a link to the next one.
void draw_stream_output(Pen& pen, const CellRef& cell, const ResidualElement& number) {
  const Frame& frame = pen.frame;
  const std::size_t layer = frame.pending.full_model->layer,
                    n_layers = frame.pending.full_model->model->description().sizes.n_layers;
  if (number.no_sum_reason.empty()) {
    pen.pair("residual stream before", inspector_text(number.entering));
    pen.pair("+ attention output", inspector_text(number.attention));
    pen.pair("+ MLP", inspector_text(number.mlp));
  } else {
    pen.prose(number.no_sum_reason, frame.palette.dim);
  }
  const std::string sum = inspector_text(number.leaving);
  if (layer + 1 == n_layers) return pen.pair("output of the last layer", sum);
  if (pen.linked_pair("inspector/stream/behind", layer_words("input of layer ", layer + 1), sum))
    go_to_layer(frame, layer + 1, {Stage::embeddings, 0, cell.row, cell.column});
}

/// Draws, for an input or output number of the attention of a whole model's layer, its relation to the
/// residual stream and the terms of the stream, with links to the layers before and after. Nothing for other
/// cells.
void draw_stream(Pen& pen, const CellRef& cell) {
  const Frame& frame = pen.frame;
  if (!frame.pending.full_model || (cell.stage != Stage::embeddings && cell.stage != Stage::output)) return;
  const ResidualElement* number = frame.pending.reading->stream(*frame.pending.full_model, cell);
  if (!number) return;
  pen.heading("Residual stream, layer " + std::to_string(frame.pending.full_model->layer));
  frame.landmarks.mark("inspector/stream", {pen.left, pen.y}, {pen.right, pen.y + 1});
  if (cell.stage == Stage::embeddings)
    draw_stream_input(pen, cell, *number);
  else
    draw_stream_output(pen, cell, *number);
}

/// Draws links to the cells of other layers from which the pinned one was followed.
void draw_path(Pen& pen) {
  const Frame& frame = pen.frame;
  if (!frame.pending.full_model || frame.pending.layers->path.empty()) return;
  const auto& path = frame.pending.layers->path;
  Flow flow{{pen.left, pen.y}, pen.right - pen.left, frame.metrics.px(12), frame.metrics.px(18)};
  for (std::size_t k = 0; k < path.size(); ++k) {
    const auto& [layer, cell] = path[k];
    const std::string words = fmt::format("{}.{} {}→{}", layer, cell.head, cell.row, cell.column);
    const ImVec2 at = flow.place(text_width(frame.fonts.sans13, words));
    if (link(frame, "inspector/path/" + std::to_string(k), frame.fonts.sans13,
             {at.x, at.y + frame.metrics.px(9)}, Align::left_middle, frame.palette.accent, words,
             "Back to this cell (Backspace: to the last)"))
      for (const Command& command : commands_back(*frame.pending.layers, k)) frame.commands.add(command);
  }
  pen.y = flow.next.y + flow.pitch + frame.metrics.px(4);
}

void draw_inspector_header(Pen& pen, const char* state) {
  const Frame& frame = pen.frame;
  pen.skip(8);
  pen.at_left(frame.fonts.sans13, frame.palette.dim, "INSPECTOR");
  if (!frame.displayed.selection.trail.empty()) {
    const float x = pen.left + text_width(frame.fonts.sans13, "INSPECTOR") + frame.metrics.px(14);
    if (link(frame, "inspector/back", frame.fonts.sans13, {x, pen.y}, Align::left_middle,
             frame.palette.accent, "‹ back", "Back to the cell whose operand you followed (Backspace)"))
      frame.commands.add(GoBack{});
  }
  pen.at_right(frame.fonts.sans13, frame.palette.faint, state);
  pen.skip(14);
  draw_path(pen);
}

/// Draws links for the actions on the pinned cell, right of the number in full.
void draw_actions(Pen& pen, const CellRef& cell) {
  const Frame& frame = pen.frame;
  if (!frame.displayed.selection.pinned) return;
  ImFont* font = frame.fonts.sans13;
  if (link(frame, "inspector/copy", font, {pen.right, pen.y}, Align::right_middle, frame.palette.accent,
           "copy as text", "Copies the computation of this number as text")) {
    const auto computation = core::explain::explain(frame.displayed, cell);
    frame.commands.add(CopyText{core::explain::plain_text(computation, frame.displayed.sequence())});
  }
  const float x = pen.right - text_width(font, "copy as text") - frame.metrics.px(14);
  if (const auto edit = mask_switch(cell, frame.displayed.trace)) {
    const bool unmasks = edit->visible;
    if (link(frame, "inspector/mask", font, {x, pen.y}, Align::right_middle, frame.palette.accent,
             unmasks ? "unmask" : "mask",
             (unmasks ? "Unmasks" : "Masks") + std::string(" this key for its query, in every head (M)")))
      frame.commands.edit(*edit);
  }
  if (cell.stage != Stage::embeddings && cell.stage != Stage::key_embeddings) return;
  if (link(frame, "inspector/edit", font, {x, pen.y}, Align::right_middle, frame.palette.accent, "edit",
           "Moves the edit cursor to this number")) {
    const bool of_keys = cell.stage == Stage::key_embeddings;
    using core::editing::MatrixName;
    frame.commands.add(
        MoveEditCursor{of_keys ? MatrixName::key_embeddings : MatrixName::embeddings, cell.row, cell.column});
  }
}

/// Draws the value before and after the last edit, if it changed: "0.1523 → 0.1498".
void draw_change(Pen& pen, const CellRef& cell, double value) {
  const Frame& frame = pen.frame;
  if (!frame.work.changes || !frame.work.changes->trace()) return;
  const auto& now = frame.displayed.trace.at(cell.stage, cell.head);
  const auto* before = frame.work.changes->before(cell.stage, cell.head, now);
  if (!before || !differs((*before)(cell.row, cell.column), value)) return;
  pen.skip(10);
  const std::string words = inspector_text((*before)(cell.row, cell.column)) + " → " + inspector_text(value);
  pen.at_left(frame.fonts.sans13, frame.palette.dim, "last edit");
  pen.at_right(frame.fonts.mono13, frame.palette.text, words);
  frame.landmarks.mark("inspector/change", {pen.left, pen.y - 8}, {pen.right, pen.y + 8});
  pen.skip(10);
}

/// Draws the value with four decimals, as large as fits, up to 32 px, and all digits smaller below.
void draw_value(Pen& pen, const CellRef& cell, const char* landmark = "inspector/value") {
  const Frame& frame = pen.frame;
  const CellDescription words = describe_cell(frame, cell);
  const double value = cell_value(frame, cell);
  const std::string text = inspector_text(value);
  const float title = text_width(frame.fonts.sans19, words.title) + frame.metrics.px(10);
  ImFont* font = text_width(frame.fonts.mono32, text) + title <= pen.right - pen.left ? frame.fonts.mono32
                                                                                      : frame.fonts.sans19;
  pen.skip(22);
  draw_glossary_line(frame, frame.fonts.sans19, frame.palette.text, {pen.left, pen.y + frame.metrics.px(4)},
                     words.title);
  pen.at_right(font, frame.palette.text, text);
  frame.landmarks.mark(landmark, {pen.left, pen.y - 16}, {pen.right, pen.y + 16});
  pen.skip(28);
  draw_cell_subject(frame, frame.fonts.sans15, {pen.left, pen.y}, Align::left_middle, pen.right - pen.left,
                    words);
  pen.skip(19);
  pen.at_left(frame.fonts.sans13, frame.palette.dim, words.place);
  pen.skip(19);
  pen.at_left(frame.fonts.mono12, frame.palette.faint, display_number(value));
  draw_actions(pen, cell);
  pen.skip(10);
  draw_change(pen, cell, value);
  if (!words.reason.empty()) {
    pen.skip(4);
    pen.prose(words.reason, frame.palette.dim);
  }
}

/// Returns how many of the last rows of weights, which must have columns, are searched in every frame.
std::size_t n_rows_searched(const core::attention::StageMatrix& weights) {
  constexpr std::size_t max_rows = 64, max_weights = 4096;
  const std::size_t most = std::max<std::size_t>(1, max_weights / weights.n_cols());
  return std::min({weights.n_rows(), most, max_rows});
}

/// Returns the largest weight among the last rows that have several unmasked keys: an instructive cell.
std::optional<CellRef> example_cell(const Frame& frame) {
  const auto& trace = frame.displayed.trace;
  if (!frame.displayed.has(Stage::weights)) return std::nullopt;
  const auto& weights = trace.at(Stage::weights, frame.displayed.look.head);
  if (weights.n_rows() == 0 || weights.n_cols() == 0) return std::nullopt;
  const std::size_t n = weights.n_rows(), first = n - n_rows_searched(weights);
  CellRef best{Stage::weights, frame.displayed.look.head, n - 1, 0};
  double largest = -1;
  for (std::size_t i = first; i < n; ++i) {
    std::size_t keys = 0;
    for (std::size_t j = 0; j < weights.n_cols() && keys < 2; ++j)
      keys += trace.at(Stage::mask)(i, j) != 0 ? 1 : 0;
    if (keys < 2 && n > 1) continue;
    const arma::rowvec row = weights.row(i);  // whole: large models compute each single weight on access
    for (std::size_t j = 0; j < row.n_elem; ++j)
      if (row[j] > largest) largest = row[j], best.row = i, best.column = j;
  }
  return best;
}

std::string searched_rows_text(const Frame& frame) {
  const auto& weights = frame.displayed.trace.at(Stage::weights, frame.displayed.look.head);
  const std::size_t n = n_rows_searched(weights);
  return n == weights.n_rows() ? "rows with ≥ 2 keys" : "last " + core::text::counted(n, "row");
}

/// Returns the number of parameters of the projections.
std::size_t n_parameters(const core::attention::Model& model) {
  using core::editing::MatrixName;
  std::size_t n = 0;
  for (const MatrixName name :
       {MatrixName::query_weight, MatrixName::key_weight, MatrixName::value_weight, MatrixName::output_weight,
        MatrixName::query_bias, MatrixName::key_bias, MatrixName::value_bias, MatrixName::output_bias})
    if (const auto* matrix = core::attention::find_matrix(model, {name, 0}))
      n += matrix->n_rows() * matrix->n_cols();
  return n;
}

/// Returns the formulas of the layer: all that it computes between projections and output.
std::vector<std::string> layer_formulas(const Frame& frame) {
  const auto& model = frame.displayed.model;
  const core::attention::Additions& added = model.additions;
  const auto has = [&](Stage stage) { return frame.displayed.has(stage); };
  std::vector<std::string> lines;
  const char* norm = has(Stage::normed_queries) ? "QK norm" : "";
  if (has(Stage::rotated_queries))
    lines.push_back(std::string("Q, K: ") + norm + (*norm ? ", then " : "") + "RoPE");
  else if (*norm)
    lines.push_back(std::string("Q, K: ") + norm);
  std::string scores = "QKᵀ";
  if (model.scale.rule != core::attention::ScaleRule::none && has(Stage::scaled_scores))
    scores += " " + core::attention::formula_of(frame.displayed.graph, model,
                                                core::attention::info(Stage::scaled_scores), true);
  const std::string plain = scores;
  if (has(Stage::capped_scores) && added.softcap) {
    const std::string cap = number_text(*added.softcap);
    scores = fmt::format("{} tanh( {} ÷ {} )", cap, scores, cap);
  }
  if (added.positions.alibi) scores += " + ALiBi";
  if (added.positions.relative) scores += " + T5 bias";
  if (!added.score_bias.empty()) scores += " + bias";
  if (scores != plain) lines.push_back("S = " + std::exchange(scores, "S"));
  if (model.mask.causal || model.mask.masks_keys()) scores += " + mask";
  if (added.sink) scores += ", sink";
  lines.push_back("head = softmax( " + scores + " ) V");
  if (has(Stage::output))
    lines.push_back("output = heads " + core::attention::formula_of(frame.displayed.graph, model,
                                                                    core::attention::info(Stage::output),
                                                                    true));
  return lines;
}

/// Draws the formulas of the layer.
void draw_formula_box(Pen& pen) {
  const Frame& frame = pen.frame;
  const std::vector<std::string> lines = layer_formulas(frame);
  const float pitch = frame.metrics.px(22), pad = frame.metrics.px(12);
  const float height = pitch * static_cast<float>(lines.size()) + frame.metrics.px(10);
  draw_rect({pen.left, pen.y}, {pen.right, pen.y + height}, frame.palette.background.raised,
            frame.metrics.px(3));
  float y = pen.y + frame.metrics.px(8);
  for (const std::string& line : lines) {
    ImFont* font = frame.fonts.sans14;
    for (ImFont* smaller : {frame.fonts.sans13, frame.fonts.sans12})
      if (formula_width(font, line) > pen.right - pen.left - 2 * pad) font = smaller;
    draw_formula(font, {pen.left + pad, y}, frame.palette.text, line);
    y += pitch;
  }
  frame.landmarks.mark("inspector/formula", {pen.left, pen.y}, {pen.right, pen.y + height});
  pen.y += height;
  pen.skip(14);
}

void draw_shapes(Pen& pen) {
  const Frame& frame = pen.frame;
  const auto& model = frame.displayed.model;
  const auto shape = [&](Stage stage) {
    const std::size_t n = core::attention::n_matrices(model, stage);
    return (n > 1 ? std::to_string(n) + " × " : std::string()) + core::attention::torch_shape(model, stage);
  };
  std::vector<std::pair<std::string, std::string>> lines;  // labels and shapes; Q, K, V join if equal
  for (const auto& [stage, label] :
       {std::pair(Stage::queries, "Q"), {Stage::keys, "K"}, {Stage::values, "V"}}) {
    if (!frame.displayed.has(stage)) continue;
    if (!lines.empty() && lines.back().second == shape(stage))
      lines.back().first += std::string(", ") + label;
    else
      lines.emplace_back(label, shape(stage));
  }
  for (const Stage stage : {Stage::scores, Stage::contexts, Stage::output})
    if (frame.displayed.has(stage)) lines.emplace_back(core::attention::info(stage).title, shape(stage));
  for (const auto& [label, words] : lines) pen.pair(label, words);
}

/// Draws a link to something to try when nothing is pinned; returns true when it was pressed.
bool draw_offer(Pen& pen, const char* name, const char* words) {
  const Frame& frame = pen.frame;
  pen.skip(12);
  const bool pressed = link(frame, name, frame.fonts.sans14, {pen.left, pen.y}, Align::left_middle,
                            frame.palette.accent, words);
  pen.skip(10);
  return pressed;
}

/// Draws, with nothing pinned, the layer with its shapes, the computation of its largest weight, and offers.
void draw_layer(Pen& pen) {
  const Frame& frame = pen.frame;
  pen.skip(14);
  pen.at_left(frame.fonts.sans19, frame.palette.text, "This layer");
  pen.at_right(frame.fonts.sans13, frame.palette.faint,
               count_text(n_parameters(frame.displayed.model)) + " parameters");
  pen.skip(18);
  draw_formula_box(pen);
  draw_shapes(pen);
  const auto cell = example_cell(frame);
  if (cell) {
    pen.rule();
    pen.at_left(frame.fonts.sans13, frame.palette.dim, "LARGEST WEIGHT");
    pen.at_right(frame.fonts.sans13, frame.palette.faint, searched_rows_text(frame));
    pen.skip(6);
    draw_value(pen, *cell, "inspector/largest");
    pen.rule();
    draw_cell_steps(pen, core::explain::explain(frame.displayed, *cell));
  }
  pen.rule();
  pen.at_left(frame.fonts.sans13, frame.palette.dim, "TRY");
  pen.skip(4);
  if (cell && draw_offer(pen, "inspector/offer/pin", "Pin this weight"))
    frame.commands.add(set<&Look::tab>(Tab::stages), PinCell{*cell});
  if (draw_offer(pen, "inspector/offer/edit", "Change an embedding"))
    frame.commands.add(set<&Selection::cursor>(EditCursor{0, 0, true}));
  if (frame.lesson) return;
  if (draw_offer(pen, "inspector/offer/lesson", "Take the first lesson"))
    frame.commands.add(StartLesson{core::lessons::lessons().front().name});
}

/// Draws the pinned, else the hovered cell, else the layer.
void draw_cell(Pen& pen) {
  const Frame& frame = pen.frame;
  const std::optional<CellRef>& cell =
      frame.displayed.selection.pinned ? frame.displayed.selection.pinned : frame.displayed.selection.hovered;
  draw_inspector_header(pen, frame.displayed.selection.pinned ? "pinned · Esc releases"
                             : cell                           ? "hovered · click pins"
                                                              : "nothing pinned");
  if (!cell) {
    draw_gradient_step(pen);
    draw_layer(pen);
  } else {
    const auto explanation = core::explain::explain(frame.displayed, *cell);
    draw_value(pen, *cell);
    draw_override_field(pen, *cell);
    draw_cell_gradient(pen, *cell);
    draw_gradient_step(pen);
    const bool shows_sources = draw_sources_choice(pen, *cell);
    if (!shows_sources) pen.rule();
    if (shows_sources)
      draw_sources(pen, *cell);
    else
      draw_cell_steps(pen, explanation);
    draw_contributions(pen, explanation);
    draw_stream(pen, *cell);
    draw_row(pen, *cell);
    draw_other_heads(pen, *cell);
    draw_downstream_cells(pen, *cell);
  }
}

}  // namespace

void go_to_layer(const Frame& frame, std::size_t layer, const CellRef& cell) {
  constexpr std::size_t max_path = 8;
  auto path = frame.pending.layers->path;
  if (const auto& pinned = frame.displayed.selection.pinned)
    path.emplace_back(frame.pending.full_model->layer, *pinned);
  if (path.size() > max_path) path.erase(path.begin());
  frame.commands.add(ShowLayer{layer});
  frame.commands.add(FollowCell{cell}, set<&Selection::trail>({}), set<&LayersLook::path>(std::move(path)));
}

void draw_inspector(const Frame& frame) {
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  Pen pen{frame, origin.x, origin.x + ImGui::GetContentRegionAvail().x, origin.y};
  const TokensLook& tokens = frame.displayed.look.tokens;
  if (frame.displayed.look.tab == Tab::tokens) {
    draw_inspector_header(pen, tokens.hovered_query  ? "hovered · click pins"
                               : tokens.pinned_query ? "pinned · Esc releases"
                                                     : "nothing pinned");
    draw_query(pen);
  } else if (frame.displayed.look.tab == Tab::heads && !frame.displayed.selection.pinned) {
    draw_inspector_header(pen, frame.displayed.selection.hovered_head ? "hovered" : "selected");
    draw_head(pen);
  } else {
    draw_cell(pen);
  }
  reserve_room(origin, {1, pen.y - origin.y + frame.metrics.px(8)});
}

}  // namespace app::panels
