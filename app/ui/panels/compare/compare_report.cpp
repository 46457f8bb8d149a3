#include "app/ui/panels/compare/compare_report.hpp"

#include <algorithm>

#include "app/session/comparing.hpp"
#include "app/theme/imgui_compat.hpp"
#include "app/ui/widgets/fields.hpp"
#include "app/ui/widgets/text.hpp"
#include "core/base/text.hpp"
#include "core/check/check.hpp"

namespace app::panels {
namespace {

using core::check::Explanation;
using widgets::Align;
using widgets::Pen;

/// A raised ground with a colored edge, behind what draw() writes.
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
  list->AddRectFilled(min, max, packed(pen.frame.palette.ground.raised), m.px(3));
  list->AddRectFilled(min, {min.x + m.px(3), max.y}, packed(edge));
  list->ChannelsMerge();
  pen.left = around.left, pen.right = around.right;
  pen.skip(8);
}

/// A button across the whole width, which the eye finds.
bool wide_button(Pen& pen, const std::string& name, const char* words, const char* help) {
  const Frame& frame = pen.frame;
  platform::move_to({pen.left, pen.y});
  ImGui::PushStyleColor(ImGuiCol_Button, vec(frame.palette.accent));
  ImGui::PushStyleColor(ImGuiCol_ButtonHovered, vec(frame.palette.accent));
  ImGui::PushStyleColor(ImGuiCol_ButtonActive, vec(frame.palette.text));
  ImGui::PushStyleColor(ImGuiCol_Text, vec(frame.palette.ground.back));
  platform::push_font(frame.fonts.sans14);
  ImGui::PushID(name.c_str());
  const bool pressed = ImGui::Button(words, {pen.right - pen.left, frame.metrics.frame});
  ImGui::PopID();
  ImGui::PopFont();
  ImGui::PopStyleColor(4);
  frame.landmarks.mark_item(name);
  widgets::tooltip(help);
  pen.y += frame.metrics.frame + frame.metrics.px(6);
  return pressed;
}

void small_words(Pen& pen, const char* words) {
  const Frame& frame = pen.frame;
  pen.skip(8);
  widgets::draw_text(frame.fonts.sans13, {pen.left, pen.y}, Align::left_middle, packed(frame.palette.dim),
                     words);
  pen.skip(8);
}

/// What the eye is to fall on first.
void headline(Pen& pen, const char* words, const std::string& name, Rgb color) {
  const Frame& frame = pen.frame;
  const float top = pen.y;
  small_words(pen, words);
  if (!name.empty()) {
    pen.skip(11);
    widgets::draw_text(frame.fonts.sans17, {pen.left, pen.y}, Align::left_middle, packed(color), name);
    pen.skip(13);
  }
  frame.landmarks.mark("compare/first", {pen.left, top}, {pen.right, pen.y});
}

void draw_explanation(Pen& pen, const Explanation& explanation, std::size_t k) {
  const Frame& frame = pen.frame;
  const std::string causes = core::text::joined(explanation.causes, " and "),
                    titles =
                        core::text::joined(explanation.mistakes, " and ", &core::mistakes::Mistake::title);
  for (const auto* mistake : explanation.mistakes) {
    pen.prose(mistake->about, frame.palette.text);
    pen.prose(core::mistakes::fix_in(*mistake, explanation.model), frame.palette.dim);
  }
  if (!explanation.details.empty())
    pen.prose(core::text::joined(explanation.details, "; or "), frame.palette.dim);
  if (!explanation.sentences.empty())
    pen.prose(core::text::joined(explanation.sentences, "; and "), frame.palette.text);
  pen.skip(4);
  const std::string name = "compare/show_mistake/" + std::to_string(k);
  if (wide_button(pen, name, "Inject this bug", "Injects it into the live model; undo reverts it"))
    frame.commands.edit(core::editing::ReplaceModel{core::check::made(explanation),
                                                    "bug: " + (titles.empty() ? causes : titles)});
  pen.prose(causes, frame.palette.dim);
}

/// What is in particular about a difference that no cause explains.
void draw_pattern(Pen& pen, const core::check::Report& report) {
  if (report.pattern.empty() || !report.explanations.empty()) return;
  const float top = pen.y;
  pen.prose("What differs: " + report.pattern, pen.frame.palette.text);
  pen.frame.landmarks.mark("compare/pattern", {pen.left, top}, {pen.right, pen.y});
}

/// Whether a tensor that does not fit has a shape that it would have with another number of heads: those
/// alone are read all the same.
bool may_fit_other_heads(const TensorCheck& check) {
  return std::ranges::any_of(check.matched.observed, [](const core::check::Observed& observed) {
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
    const ComparisonWork& work = frame.compared.work;
    small_words(pen, "searching for the cause");
    pen.prose(std::to_string(work.tried) + (work.tried == 1 ? " bug" : " bugs, alone and in pairs,") +
                  " tried so far, " + widgets::fixed(work.seconds_searched, 1) + " s",
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

/// A few lines with a word in front of each, and how many more there are.
void draw_lines(Pen& pen, const char* before, const std::vector<std::string>& lines) {
  constexpr std::size_t shown = 6;
  for (std::size_t k = 0; k < std::min(shown, lines.size()); ++k)
    pen.prose(before + lines[k], pen.frame.palette.dim);
  if (lines.size() > shown)
    pen.prose("and " + std::to_string(lines.size() - shown) + " more", pen.frame.palette.dim);
}

/// The tensors whose shape is none of the stage that they are called.
void draw_unfit(Pen& pen, const TensorCheck& check) {
  const Frame& frame = pen.frame;
  const float top = pen.y;
  for (const auto& stage : check.report.stages)
    if (!stage.obstacle.empty()) pen.prose(stage.tensor + ": " + stage.obstacle, frame.palette.status.bad);
  if (check.report.has_shape_mismatch())
    frame.landmarks.mark("compare/unfit", {pen.left, top}, {pen.right, pen.y});
}

/// Tensors that were not read in the plain layout.
std::vector<std::string> readings(const TensorCheck& check) {
  std::vector<std::string> lines;
  for (const auto& stage : check.report.stages)
    if (!stage.reading.empty()) lines.push_back(stage.tensor + " as " + stage.reading);
  return lines;
}

}  // namespace

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
  } else if (check.report.agrees || !first) {
    card(pen, frame.palette.status.good, [&] {
      headline(pen, "first difference", "none", frame.palette.status.good);
      pen.prose("Every tensor agrees with the live model within the tolerance: " +
                    core::check::coverage_words(check.report) + ".",
                frame.palette.dim);
    });
  } else {
    const auto& status = frame.palette.status;
    const Rgb color = check.report.has_shape_mismatch() ? status.bad : status.warning;
    card(pen, color, [&] {
      headline(pen, "first difference", core::attention::info(first->stage).title, color);
      draw_unfit(pen, check);
      draw_pattern(pen, check.report);
      draw_causes(pen, check);
    });
  }
}

void draw_compare_matching(Pen& pen) {
  const Frame& frame = pen.frame;
  const TensorCheck& check = *frame.compared.comparison->tensors;
  pen.skip(8);
  const float top = pen.y;
  draw_lines(pen, "ignored: ", check.report.left_out);
  draw_lines(pen, "read: ", readings(check));
  draw_lines(pen, "", check.report.notes);
  if (pen.y > top) frame.landmarks.mark("compare/notes", {pen.left, top}, {pen.right, pen.y});
  platform::move_to({pen.left, pen.y});
  if (widgets::button(frame, "compare/match", "Match tensors by hand…", "Assigns tensors to stages"))
    frame.commands.add(ShowDialog{Dialog::match_tensors});
  pen.y += frame.metrics.frame;
}

}  // namespace app::panels
