#include "app/ui/panels/compare/compare_panel.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <optional>

#include "app/session/comparing.hpp"
#include "app/session/jobs.hpp"
#include "app/session/navigation.hpp"
#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/dialogs/dialogs.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/fields.hpp"
#include "core/base/text.hpp"
#include "core/check/check.hpp"
#include "core/check/match.hpp"

namespace app::panels {

namespace {

using core::attention::StageInfo;
using core::check::Explanation;

void draw_square(const Frame& frame, ImVec2 middle, Rgb color) {
  const float r = frame.metrics.px(3);
  draw_rect({middle.x - r, middle.y - r}, {middle.x + r, middle.y + r}, color);
}

void draw_first_difference(Pen& pen) {
  const Frame& frame = pen.frame;
  const ComparedStage* first = frame.compared.comparison->first;
  pen.skip(20);
  pen.at_left(frame.fonts.sans17, frame.palette.text, "First difference");
  const char* name = first ? core::attention::info(first->all.stage).title : "none";
  pen.at_right(frame.fonts.sans17, first ? frame.palette.status.warning : frame.palette.status.good, name);
  frame.landmarks.mark("compare/first", {pen.left, pen.y - frame.metrics.px(10)},
                       {pen.right, pen.y + frame.metrics.px(10)});
  pen.skip(14);
  const bool at_once = first && first == &frame.compared.comparison->stages.front();
  const bool has_rounding =
      std::ranges::any_of(frame.compared.comparison->stages,
                          [](const ComparedStage& s) { return s.within && s.all.largest > 0; });
  pen.prose(!first         ? has_rounding ? "A and B are equal to rounding in every cell of every stage."
                                          : "A and B are identical in every stage."
            : at_once      ? "A and B differ from the very first stage."
            : has_rounding ? "Everything before it is equal to rounding."
                           : "Everything before it is equal.",
            frame.palette.dim);
}

/// Scrolls to the stage and pins the cell that differs most.
void go_to(const Frame& frame, const core::compare::StageDifference& stage) {
  frame.commands.add(set<&Selection::scroll_target>(stage.stage));
  if (stage.largest == 0) return;
  const CellRef cell{stage.stage, stage.head, stage.row, stage.column};
  if (frame.pending.selection.pinned != cell) frame.commands.add(PinCell{cell});
}

void draw_stage_line(Pen& pen, const ComparedStage& stage) {
  const Frame& frame = pen.frame;
  const auto& all = stage.all;
  const StageInfo& info = core::attention::info(all.stage);
  const float height = frame.metrics.px(frame.metrics.compact ? 20 : 22), middle = pen.y + height / 2;
  const ImVec2 min{pen.left - frame.metrics.px(4), pen.y}, max{pen.right, pen.y + height};
  platform::move_to(min);
  const std::string name = std::string("compare/row/") + info.name;
  const bool pressed = hit_area(name.c_str(), {max.x - min.x, height});
  frame.landmarks.mark_item(name);
  const bool is_first = &stage == frame.compared.comparison->first;
  const bool focused = has_keyboard_focus();
  if (is_first || ImGui::IsItemHovered()) draw_rect(min, max, frame.palette.background.raised);
  if (is_first) draw_rect(min, {min.x + frame.metrics.px(2), max.y}, frame.palette.status.warning);
  if (focused) outline(min, max, frame.palette.accent, 2);
  const float indent = frame.metrics.px(18);
  const ImVec2 mark{pen.left + frame.metrics.px(5), std::round(middle)};
  if (!stage.within)
    draw_square(frame, mark, is_first ? frame.palette.status.warning : frame.palette.dim);
  else
    draw_tick(frame, mark, frame.palette.status.good);
  const Rgb ink = !stage.within ? frame.palette.text : frame.palette.faint;
  const float cell_room = frame.metrics.px(74);
  const float title_room = all.obstacle.empty()
                               ? pen.right - pen.left - indent - cell_room - frame.metrics.px(6) -
                                     text_width(frame.fonts.mono13, compared_number(all.largest))
                               : pen.right - pen.left - indent;
  draw_text(frame.fonts.sans14, {pen.left + indent, middle}, Align::left_middle, ink,
            shortened(frame.fonts.sans14, info.title, title_room));
  if (!all.obstacle.empty()) {
    const float room =
        pen.right - pen.left - indent - text_width(frame.fonts.sans14, info.title) - frame.metrics.px(10);
    draw_text(frame.fonts.sans13, {pen.right, middle}, Align::right_middle, frame.palette.dim,
              shortened(frame.fonts.sans13, all.obstacle, room));
    tooltip(all.obstacle + ": they cannot be compared");
  } else {
    draw_text(frame.fonts.mono13, {pen.right - cell_room, middle}, Align::right_middle, ink,
              compared_number(all.largest));
    if (all.largest > 0) {
      const CellRef cell{all.stage, all.head, all.row, all.column};
      const std::string place = fmt::format("{}, {}", cell.row, cell.column);
      draw_text(frame.fonts.mono12, {pen.right - frame.metrics.px(2), middle}, Align::right_middle,
                frame.palette.dim, info.per_head ? fmt::format("{}: {}", cell.head, place) : place);
      tooltip("Largest at " + compared_cell(frame, cell) + ". Click to go there.");
    } else {
      tooltip("Equal in every cell");
    }
  }
  if (pressed) go_to(frame, all);
  pen.y += height;
}

/// Draws the field for the title of the selected baseline.
void draw_baseline_name(Pen& pen) {
  const Frame& frame = pen.frame;
  if (frame.compared.references.empty()) return;
  const Reference& a = frame.compared.references[frame.displayed.look.compared.reference];
  const float label = frame.metrics.px(62);
  pen.skip(2);
  draw_text(frame.fonts.sans14, {pen.left, pen.y + frame.metrics.frame / 2}, Align::left_middle,
            frame.palette.dim, "name " + a.name);
  platform::move_to({pen.left + label, pen.y});
  const auto answer = text_field(
      frame, "reference/title", a.title,
      {.width = pen.right - pen.left - label, .font = frame.fonts.sans14, .alignment = Alignment::left});
  tooltip("The name of this snapshot");
  if (answer.text && answer.text->find_first_not_of(' ') != std::string::npos)
    frame.commands.add(RenameReference{*answer.text});
  pen.y += frame.metrics.frame;
  pen.skip(10);
}

void draw_pinned_cell(Pen& pen) {
  const Frame& frame = pen.frame;
  if (!frame.displayed.selection.pinned) return;
  const CellRef& cell = *frame.displayed.selection.pinned;
  const auto numbers = compared_numbers(frame, cell);
  if (!numbers) return;
  const auto& [a, b] = *numbers;
  const StageInfo& info = core::attention::info(cell.stage);
  pen.rule();
  pen.heading(std::string(info.title) + ", pinned");
  pen.prose(compared_cell(frame, cell), frame.palette.dim);
  pen.pair("A", compared_number(a));
  pen.pair("B", compared_number(b));
  pen.pair("A − B",
           compared_number(core::compare::difference(core::compare::DifferenceKind::a_minus_b, a, b)));
  frame.landmarks.mark("compare/pinned", {pen.left, pen.y - frame.metrics.px(60)}, {pen.right, pen.y});
}

/// Draws the meaning of "equal": exact, to rounding, within tolerance; or that the comparison is out of date.
void draw_comparison_status(Pen& pen) {
  const Frame& frame = pen.frame;
  const ComparisonProgress& work = frame.compared.work;
  std::string words = !frame.compared.comparison            ? ""
                      : frame.compared.comparison->tensors  ? "within tolerance, all heads"
                      : frame.compared.comparison->is_exact ? "exact, all heads"
                                                            : "to rounding, all heads";
  if (work.is_updating) {
    words = frame.compared.comparison ? "updating" : "comparing";
    if (work.seconds >= busy_delay_seconds) words += ", " + fixed(work.seconds, 1) + " s";
    const float half = frame.metrics.px(8);
    frame.landmarks.mark("compare/renewal", {pen.left, pen.y - half}, {pen.right, pen.y + half});
  }
  pen.at_right(frame.fonts.sans13, work.is_updating ? frame.palette.text : frame.palette.faint, words);
}

/// Draws the first lines with a prefix, and how many more there are.
void draw_lines(Pen& pen, const char* before, const std::vector<std::string>& lines) {
  constexpr std::size_t shown = 6;
  for (std::size_t k = 0; k < std::min(shown, lines.size()); ++k)
    pen.prose(before + lines[k], pen.frame.palette.dim);
  if (lines.size() > shown)
    pen.prose(fmt::format("and {} more", lines.size() - shown), pen.frame.palette.dim);
}

/// Returns a line for each tensor that was not read in the plain layout.
std::vector<std::string> readings(const TensorCheck& check) {
  std::vector<std::string> lines;
  for (const auto& stage : check.report.stages)
    if (!stage.reading.empty()) lines.push_back(stage.tensor + " as " + stage.reading);
  return lines;
}

/// Draws the ignored tensors, how the rest was read, and a button to assign tensors to stages by hand.
void draw_tensor_matching(Pen& pen) {
  const Frame& frame = pen.frame;
  const TensorCheck& check = *frame.compared.comparison->tensors;
  pen.skip(8);
  const float top = pen.y;
  draw_lines(pen, "ignored: ", check.report.left_out);
  draw_lines(pen, "read: ", readings(check));
  draw_lines(pen, "", check.report.notes);
  if (pen.y > top) frame.landmarks.mark("compare/notes", {pen.left, top}, {pen.right, pen.y});
  platform::move_to({pen.left, pen.y});
  if (button(frame, "compare/match", "Match tensors by hand…", "Assigns tensors to stages"))
    frame.commands.add(ShowDialog{Dialog::match_tensors});
  pen.y += frame.metrics.frame;
}

/// Draws a raised background with a colored edge behind the lines that draw() writes.
template <class Draw>
void card(Pen& pen, Rgb edge, Draw draw) {
  const Metrics& m = pen.frame.metrics;
  const Pen around = pen;
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->ChannelsSplit(2);
  list->ChannelsSetCurrent(1);
  pen.left += m.px(12), pen.right -= m.px(8);
  pen.skip(8);
  draw();
  pen.skip(6);
  list->ChannelsSetCurrent(0);
  const ImVec2 min{around.left, around.y}, max{around.right, pen.y};
  draw_rect(min, max, pen.frame.palette.background.raised, m.px(3));
  draw_rect(min, {min.x + m.px(3), max.y}, edge);
  list->ChannelsMerge();
  pen.left = around.left, pen.right = around.right;
  pen.skip(8);
}

/// Draws a prominent button across the whole width; returns true when it was pressed.
bool wide_button(Pen& pen, const std::string& name, const char* words, const char* help) {
  const Frame& frame = pen.frame;
  platform::move_to({pen.left, pen.y});
  ImGui::PushStyleColor(ImGuiCol_Button, vec(frame.palette.accent));
  ImGui::PushStyleColor(ImGuiCol_ButtonHovered, vec(frame.palette.accent));
  ImGui::PushStyleColor(ImGuiCol_ButtonActive, vec(frame.palette.text));
  ImGui::PushStyleColor(ImGuiCol_Text, vec(frame.palette.background.back));
  platform::push_font(frame.fonts.sans14);
  ImGui::PushID(name.c_str());
  const bool pressed = ImGui::Button(words, {pen.right - pen.left, frame.metrics.frame});
  ImGui::PopID();
  ImGui::PopFont();
  ImGui::PopStyleColor(4);
  frame.landmarks.mark_item(name);
  tooltip(help);
  pen.y += frame.metrics.frame + frame.metrics.px(6);
  return pressed;
}

void small_words(Pen& pen, const char* words) {
  const Frame& frame = pen.frame;
  pen.skip(8);
  pen.at_left(frame.fonts.sans13, frame.palette.dim, words);
  pen.skip(8);
}

/// Draws the most prominent lines of a report: words and, if any, a name below.
void headline(Pen& pen, const char* words, const std::string& name, Rgb color) {
  const Frame& frame = pen.frame;
  const float top = pen.y;
  small_words(pen, words);
  if (!name.empty()) {
    pen.skip(11);
    pen.at_left(frame.fonts.sans17, color, name);
    pen.skip(13);
  }
  frame.landmarks.mark("compare/first", {pen.left, top}, {pen.right, pen.y});
}

void draw_explanation(Pen& pen, const Explanation& explanation, std::size_t k) {
  const Frame& frame = pen.frame;
  const std::string causes = core::text::joined(explanation.causes, " and "),
                    titles = core::text::joined(explanation.bugs, " and ", [](const core::bugs::Bug*bug) {
                      return std::string(title_of(*bug));
                    });
  for (const auto* bug : explanation.bugs) {
    pen.prose(bug->texts.about, frame.palette.text);
    pen.prose(core::bugs::fix_in(*bug, explanation.model), frame.palette.dim);
  }
  if (!explanation.details.empty())
    pen.prose(core::text::joined(explanation.details, "; or "), frame.palette.dim);
  if (!explanation.sentences.empty())
    pen.prose(core::text::joined(explanation.sentences, "; and "), frame.palette.text);
  pen.skip(4);
  const std::string name = "compare/show_mistake/" + std::to_string(k);
  if (wide_button(pen, name, "Inject this bug", "Injects it into the live model; undo reverts it"))
    frame.commands.edit(core::editing::ReplaceModel{core::check::injected(explanation),
                                                    "bug: " + (titles.empty() ? causes : titles)});
  pen.prose(causes, frame.palette.dim);
}

/// Draws the pattern of a difference that no known cause explains.
void draw_pattern(Pen& pen, const core::check::Report& report) {
  if (report.pattern.empty() || !report.explanations.empty()) return;
  const float top = pen.y;
  pen.prose("What differs: " + report.pattern, pen.frame.palette.text);
  pen.frame.landmarks.mark("compare/pattern", {pen.left, top}, {pen.right, pen.y});
}

/// Whether a bug may explain the shape of a mismatched tensor, such as another number of heads: only then are
/// its numbers read.
bool may_fit_other_heads(const TensorCheck& check) {
  return std::ranges::any_of(check.matched.observed, [](const core::check::ObservedTensor& observed) {
    return observed.readings.empty() && !observed.tensor.numbers.empty();
  });
}

void draw_causes(Pen& pen, const TensorCheck& check) {
  const Frame& frame = pen.frame;
  const auto& found = check.report.explanations;
  if (!check.report.has_wrong_numbers() && found.empty() && !may_fit_other_heads(check)) return;
  if (!found.empty()) {
    small_words(pen, found.size() == 1 ? "likely cause: it explains every tensor"
                                       : "likely causes: each explains every tensor");
    for (std::size_t k = 0; k < found.size(); ++k) {
      if (k > 0) pen.skip(8);
      draw_explanation(pen, found[k], k);
    }
  } else if (check.searched) {
    small_words(pen, "cause not known");
    pen.prose("No known bug, alone or in pairs, explains all tensors.", frame.palette.text);
    for (const std::string& words : check.report.partly)
      pen.prose("Explains a part: " + words, frame.palette.text);
    for (const std::string& words : check.report.described)
      pen.prose("Differs: " + words, frame.palette.text);
  } else if (frame.compared.work.is_searching) {
    const ComparisonProgress& work = frame.compared.work;
    small_words(pen, "searching for the cause");
    pen.prose(fmt::format("{}{} tried so far, {} s", work.n_tried,
                          work.n_tried == 1 ? " bug" : " bugs, alone and in pairs,",
                          fixed(work.seconds_searched, 1)),
              frame.palette.text);
    pen.skip(4);
    if (wide_button(pen, "compare/stop", "Stop", "The search can be started again"))
      frame.commands.add(StopSearch{});
  } else {
    pen.skip(4);
    if (wide_button(pen, "compare/search", "Find the cause",
                    "Tries every known bug, alone and in pairs, in the background"))
      frame.commands.add(SearchCauses{});
  }
}

/// Draws the tensors whose shape does not match the stage of their name.
void draw_shape_mismatches(Pen& pen, const TensorCheck& check) {
  const Frame& frame = pen.frame;
  const float top = pen.y;
  for (const auto& stage : check.report.stages)
    if (!stage.obstacle.empty()) pen.prose(stage.tensor + ": " + stage.obstacle, frame.palette.status.bad);
  if (check.report.has_shape_mismatch())
    frame.landmarks.mark("compare/unfit", {pen.left, top}, {pen.right, pen.y});
}

/// Draws the result of a tensor check: the first stage that differs, and the likely cause with a button that
/// injects it into the live model.
void draw_compare_report(Pen& pen) {
  const Frame& frame = pen.frame;
  const TensorCheck& check = *frame.compared.comparison->tensors;
  const auto* first = check.report.first_difference();
  pen.skip(6);
  if (!check.problem.empty()) {
    card(pen, frame.palette.status.warning, [&] {
      headline(pen, "nothing to compare", "", frame.palette.status.warning);
      pen.prose(check.problem, frame.palette.text);
    });
  } else if (const std::string words = core::check::noise_words(check.report); !words.empty()) {
    card(pen, frame.palette.status.warning, [&] {
      headline(pen, "first difference", "more than noise", frame.palette.status.warning);
      pen.prose(words + ".", frame.palette.text);
    });
  } else if (check.report.agrees || !first) {
    const std::string hidden = core::check::hidden_words(check.report);
    card(pen, frame.palette.status.good, [&] {
      headline(pen, "first difference", "none", frame.palette.status.good);
      pen.prose("Every tensor agrees with the live model within the tolerance: " +
                    core::check::coverage_words(check.report) + ".",
                frame.palette.dim);
      if (!hidden.empty()) pen.prose(hidden + ".", frame.palette.text);
    });
  } else {
    const auto& status = frame.palette.status;
    const Rgb color = check.report.has_shape_mismatch() ? status.bad : status.warning;
    card(pen, color, [&] {
      headline(pen, "first difference", core::attention::info(first->stage).title, color);
      draw_shape_mismatches(pen, check);
      draw_pattern(pen, check.report);
      draw_causes(pen, check);
    });
  }
}

/// Draws the result of the comparison.
void draw_comparison_result(Pen& pen) {
  const Frame& frame = pen.frame;
  if (frame.compared.comparison->tensors)
    draw_compare_report(pen);
  else
    draw_first_difference(pen);
  pen.rule();
  const ImU32 faint = packed(frame.palette.faint);
  draw_text(frame.fonts.sans13, {pen.left + frame.metrics.px(18), pen.y}, Align::left_middle, faint, "stage");
  draw_text(frame.fonts.sans13, {pen.right - frame.metrics.px(74), pen.y}, Align::right_middle, faint,
            "largest |A − B|");
  draw_text(frame.fonts.sans13, {pen.right - frame.metrics.px(2), pen.y}, Align::right_middle, faint, "cell");
  pen.skip(11);
  for (const ComparedStage& stage : frame.compared.comparison->stages) draw_stage_line(pen, stage);
  if (frame.compared.comparison->tensors) draw_tensor_matching(pen);
  draw_pinned_cell(pen);
}

}  // namespace

std::optional<std::pair<double, double>> compared_numbers(const Frame& frame, const CellRef& cell) {
  const ReferenceComparison& c = *frame.compared.comparison;
  const auto& stages = c.stages;
  const auto it =
      std::ranges::find_if(stages, [&](const ComparedStage& s) { return s.all.stage == cell.stage; });
  if (it == stages.end() || !it->all.same_shape) return std::nullopt;
  const StageInfo& info = core::attention::info(cell.stage);
  const std::size_t head = info.per_head ? c.key.head : cell.head;
  if (!it->difference.empty() && head == cell.head) {
    if (!it->difference.in_range(cell.row, cell.column)) return std::nullopt;
    return std::pair(it->numbers_a(cell.row, cell.column), it->numbers_b(cell.row, cell.column));
  }
  if (c.key.version != frame.displayed.version) return std::nullopt;  // the comparison is out of date
  const double kept = c.trace->at(info.stage, cell.head)(cell.row, cell.column);
  const double live = frame.displayed.trace.at(info.stage, cell.head)(cell.row, cell.column);
  return c.tensors ? std::pair(live, kept) : std::pair(kept, live);
}

std::string compared_number(double value) {
  const double size = std::abs(value);
  if (value == 0) return "0";
  const bool is_fixed = !std::isfinite(value) || (size < 1e5 && size >= 1e-5);
  return is_fixed ? fixed(value, 6) : scientific(value);
}

std::string compared_cell(const Frame& frame, const CellRef& cell) {
  const StageInfo& stage = core::attention::info(cell.stage);
  const core::attention::Sequence& sequence = live_sequence(*frame.compared.comparison);
  const auto name = [&](const std::string& token) {
    return shortened(frame.fonts.sans14, token, frame.metrics.px(90));
  };
  std::string words = stage.per_head ? fmt::format("head {}: ", cell.head) : "";
  words += name(row_tokens(stage, sequence)[cell.row]);
  if (stage.columns == core::attention::Columns::tokens) words += " → " + name(sequence.keys()[cell.column]);
  if (stage.columns == core::attention::Columns::features) words += ", column " + std::to_string(cell.column);
  return words;
}

void draw_compare_list(const Frame& frame) {
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  Pen pen{frame, origin.x, origin.x + ImGui::GetContentRegionAvail().x, origin.y};
  pen.skip(8);
  pen.at_left(frame.fonts.sans13, frame.palette.dim, "COMPARE");
  draw_comparison_status(pen);
  pen.skip(8);
  if (frame.compared.comparison) draw_comparison_result(pen);
  pen.rule();
  draw_baseline_name(pen);
  draw_references(pen);
  reserve_room(origin, {1, pen.y - origin.y + frame.metrics.px(8)});
}

namespace {

/// Returns the lines of the combo box of a tensor: by name, ignored, and every stage.
std::vector<Option> choices() {
  std::vector<Option> all{{"by name", ""}, {"ignored", ""}};
  for (const auto& stage : core::attention::stages())
    all.push_back({stage.name, stage.title, all.size() == 2});
  return all;
}

std::size_t choice_of(const Reference& reference, const std::string& tensor) {
  const auto hand = reference.by_hand.find(tensor);
  if (hand == reference.by_hand.end()) return 0;
  const auto* stage = core::attention::find_stage(hand->second);
  return stage ? 2 + static_cast<std::size_t>(stage->stage) : 1;
}

std::optional<std::string> stage_of(std::size_t choice) {
  if (choice == 0) return std::nullopt;
  return choice == 1 ? "" : core::attention::stages()[choice - 2].name;
}

/// Draws the choice of the layout of the heads' features, and of the layer if there are several.
void draw_layout_choices(const Frame& frame, const Reference& reference, float width) {
  const FormRows form(frame, "layout", width);
  std::vector<Option> options{{"heads: whichever layout fits"}};
  std::size_t now = 0;
  for (const auto& layout : core::check::layouts()) {
    if (reference.layout == layout.name) now = options.size();
    options.push_back({std::string(layout.name) + ": " + layout.about});
  }
  form.row("Layout");
  if (const auto k = combo(frame, "match/layout", frame.metrics.px(290), options, now))
    frame.commands.add(SetTensorLayout{*k == 0 ? "" : core::check::layouts()[*k - 1].name, reference.layer});
  const ReferenceComparison* comparison = frame.compared.comparison;
  if (!comparison || !comparison->tensors || comparison->key.reference != reference.id) return;
  const auto& matched = comparison->tensors->matched;
  if (matched.layers.size() < 2) return;
  options.clear();
  for (std::size_t k = 0; k < matched.layers.size(); ++k)
    options.push_back({matched.layers[k].empty() ? std::to_string(k) : matched.layers[k]});
  form.row("Layer");
  if (const auto k = combo(frame, "match/layer", frame.metrics.px(290), options, matched.layer))
    frame.commands.add(SetTensorLayout{reference.layout, options[*k].words});
}

}  // namespace

void draw_match_dialog(const Frame& frame) {
  const float width = dialog_width(frame, 620);
  if (frame.displayed.look.compared.reference >= frame.compared.references.size() ||
      !frame.compared.references[frame.displayed.look.compared.reference].tensors) {
    paragraph(frame.fonts.sans15, frame.palette.dim, width, "There are no tensors to match.");
  } else {
    const Reference& reference = frame.compared.references[frame.displayed.look.compared.reference];
    const std::vector<Option> options = choices();
    draw_layout_choices(frame, reference, width);
    const float column = width - frame.metrics.px(200),
                height = ImGui::GetIO().DisplaySize.y - frame.metrics.px(260);
    ImGui::BeginChild(
        "tensors", {width, std::min(height, frame.metrics.pitch *
                                                    static_cast<float>(reference.tensors->tensors().size()) +
                                                frame.metrics.px(8))});
    std::size_t k = 0;
    for (const auto& tensor : reference.tensors->tensors()) {
      ImGui::PushID(static_cast<int>(k));
      const ImVec2 at = ImGui::GetCursorScreenPos();
      const std::string words = tensor.name + "  " + core::formats::shape_text(tensor.shape) + "  " +
                                core::formats::dtype_name(tensor.dtype);
      draw_text_within(frame.fonts.sans15, {at.x, centered_y(frame.fonts.sans15, at.y, frame.metrics.frame)},
                       column - frame.metrics.px(10), frame.palette.text, words);
      platform::move_to({at.x + column, at.y});
      const std::size_t now = choice_of(reference, tensor.name);
      if (const auto chosen = combo(frame, "match/" + std::to_string(k), frame.metrics.px(180), options, now))
        frame.commands.add(MapTensor{tensor.name, stage_of(*chosen)});
      platform::move_to({at.x, at.y + frame.metrics.pitch});
      ImGui::PopID();
      ++k;
    }
    ImGui::Dummy({1, 1});
    ImGui::EndChild();
  }
  if (button(frame, "dialog/close", "Close")) close_dialog(frame);
}

}  // namespace app::panels
