#include "app/ui/panels/compare/compare_report.hpp"

#include <algorithm>

#include "app/ui/widgets/buttons.hpp"
#include "app/ui/widgets/number_text.hpp"
#include "app/ui/widgets/text.hpp"
#include "app/work/tensor_check.hpp"
#include "core/text/words.hpp"

namespace app::panels {
namespace {

using core::check::Explanation;
using widgets::Align;
using widgets::Pen;

/// A raised ground with a coloured edge, behind what draw() writes.
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
  ImGui::SetCursorScreenPos({pen.left, pen.y});
  ImGui::PushStyleColor(ImGuiCol_Button, vec(frame.palette.accent));
  ImGui::PushStyleColor(ImGuiCol_ButtonHovered, vec(frame.palette.accent));
  ImGui::PushStyleColor(ImGuiCol_ButtonActive, vec(frame.palette.text));
  ImGui::PushStyleColor(ImGuiCol_Text, vec(frame.palette.ground.back));
  ImGui::PushFont(frame.fonts.sans14);
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
void headline(Pen& pen, const char* words, const std::string& name, Rgb colour) {
  const Frame& frame = pen.frame;
  const float top = pen.y;
  small_words(pen, words);
  if (!name.empty()) {
    pen.skip(11);
    widgets::draw_text(frame.fonts.sans17, {pen.left, pen.y}, Align::left_middle, packed(colour), name);
    pen.skip(13);
  }
  frame.landmarks.mark("compare/first", {pen.left, top}, {pen.right, pen.y});
}

void draw_explanation(Pen& pen, const Explanation& explanation, std::size_t k) {
  const Frame& frame = pen.frame;
  const std::string causes = core::text::joined(explanation.causes, " and ");
  for (const auto* mistake : explanation.mistakes) {
    pen.prose(mistake->about, frame.palette.text);
    pen.prose(mistake->remedy, frame.palette.dim);
  }
  pen.skip(4);
  const std::string name = "compare/show_mistake/" + std::to_string(k);
  if (wide_button(pen, name, "Show me this mistake", "Makes it in the live model; undo takes it back"))
    frame.commands.edit(core::editing::ReplaceModel{explanation.model, "mistake: " + causes});
  pen.prose(causes, frame.palette.dim);
}

void draw_causes(Pen& pen, const TensorCheck& check) {
  const Frame& frame = pen.frame;
  const auto& found = check.report.explanations;
  if (!found.empty()) {
    small_words(pen, found.size() == 1 ? "likely cause: it explains every tensor"
                                       : "likely causes: each explains every tensor");
    for (std::size_t k = 0; k < found.size(); ++k) {
      if (k > 0) pen.skip(8);
      draw_explanation(pen, found[k], k);
    }
  } else if (check.searched) {
    small_words(pen, "cause not known");
    pen.prose("None of the known mistakes, alone or in pairs, explains all of the tensors.",
              frame.palette.text);
  } else if (frame.compared.work.is_searching) {
    const ComparisonWork& work = frame.compared.work;
    small_words(pen, "looking for the cause");
    pen.prose(std::to_string(work.tried) + (work.tried == 1 ? " mistake" : " mistakes, alone and in pairs,") +
                  " tried so far, " + widgets::fixed(work.seconds_searched, 1) + " s",
              frame.palette.text);
    pen.skip(4);
    if (wide_button(pen, "compare/stop", "Stop looking", "The search can be begun again"))
      frame.commands.add(StopSearch{});
  } else {
    pen.skip(4);
    if (wide_button(pen, "compare/search", "Find the cause",
                    "Tries every known mistake, alone and in pairs, beside the window"))
      frame.commands.add(SearchCauses{});
  }
}

/// The names of tensors that are no stage, the first few of many.
std::string left_out(const std::vector<std::string>& names) {
  constexpr std::size_t shown = 6;
  std::string words = "left out: ";
  for (std::size_t k = 0; k < std::min(shown, names.size()); ++k) words += (k > 0 ? ", " : "") + names[k];
  if (names.size() > shown) words += " and " + std::to_string(names.size() - shown) + " more";
  return words;
}

/// The name of a stage as a line of the combo box.
std::vector<widgets::Option> choices() {
  std::vector<widgets::Option> all{{"by its name", ""}, {"left out", ""}};
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
      headline(pen, "first stage that differs", "none", frame.palette.status.good);
      pen.prose("Every tensor agrees with the live model within the tolerance.", frame.palette.dim);
    });
  } else {
    card(pen, frame.palette.status.warning, [&] {
      headline(pen, "first stage that differs", core::attention::info(first->stage).title,
               frame.palette.status.warning);
      if (!first->obstacle.empty()) pen.prose(first->tensor + ": " + first->obstacle, frame.palette.dim);
      draw_causes(pen, check);
    });
  }
}

void draw_compare_matching(Pen& pen) {
  const Frame& frame = pen.frame;
  const auto& names = frame.compared.comparison->tensors->matched.left_out;
  pen.skip(8);
  if (!names.empty()) pen.prose(left_out(names), frame.palette.dim);
  ImGui::SetCursorScreenPos({pen.left, pen.y});
  if (widgets::button(frame, "compare/match", "Match tensors by hand…", "Says which tensor is which stage"))
    frame.commands.add(ShowDialog{Dialog::match_tensors});
  pen.y += frame.metrics.frame;
}

void draw_match_dialog(const Frame& frame) {
  const float width = std::min(frame.metrics.px(620), ImGui::GetIO().DisplaySize.x - frame.metrics.px(80));
  if (frame.shown.look.reference >= frame.compared.references.size() ||
      !frame.compared.references[frame.shown.look.reference].tensors) {
    widgets::paragraph(frame.fonts.sans15, frame.palette.dim, width, "There are no tensors to be matched.");
  } else {
    const Reference& reference = frame.compared.references[frame.shown.look.reference];
    const std::vector<widgets::Option> options = choices();
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
      widgets::draw_text_within(frame.fonts.sans15,
                                {at.x, widgets::centred_y(frame.fonts.sans15, at.y, frame.metrics.frame)},
                                column - frame.metrics.px(10), frame.palette.text, words);
      ImGui::SetCursorScreenPos({at.x + column, at.y});
      const std::size_t now = choice_of(reference, tensor.name);
      if (const auto chosen = widgets::combo(frame, "match/" + std::to_string(k), frame.metrics.px(180),
                                             options[now].words, options, now))
        frame.commands.add(MapTensor{tensor.name, stage_of(*chosen)});
      ImGui::SetCursorScreenPos({at.x, at.y + frame.metrics.pitch});
      ImGui::PopID();
      ++k;
    }
    ImGui::Dummy({1, 1});
    ImGui::EndChild();
  }
  if (widgets::button(frame, "dialog/close", "Close")) frame.commands.add(ShowDialog{Dialog::none});
}

}  // namespace app::panels
