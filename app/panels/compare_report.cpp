#include "app/panels/compare_report.hpp"

#include <algorithm>

#include "app/widgets/buttons.hpp"
#include "app/widgets/text.hpp"

namespace app::panels {
namespace {

using core::check::Explanation;
using widgets::Align;
using widgets::Pen;

/// A button on a line of its own.
bool button(Pen& pen, const std::string& name, const char* words, const char* help) {
  ImGui::SetCursorScreenPos({pen.left, pen.y});
  const bool pressed = widgets::button(pen.frame, name, words, help);
  pen.y += pen.frame.metrics.frame + pen.frame.metrics.px(6);
  return pressed;
}

void headline(Pen& pen, const char* words, const std::string& name, Rgb colour) {
  const Frame& frame = pen.frame;
  pen.skip(20);
  widgets::draw_text(frame.fonts.sans17, {pen.left, pen.y}, Align::left_middle, packed(frame.palette.text),
                     words);
  widgets::draw_text(frame.fonts.sans17, {pen.right, pen.y}, Align::right_middle, packed(colour), name);
  frame.landmarks.mark("compare/first", {pen.left, pen.y - frame.metrics.px(10)},
                       {pen.right, pen.y + frame.metrics.px(10)});
  pen.skip(14);
}

std::string joined(const std::vector<std::string>& causes) {
  std::string words;
  for (const std::string& cause : causes) words += (words.empty() ? "" : " and ") + cause;
  return words;
}

void draw_explanation(Pen& pen, const Explanation& explanation, std::size_t k) {
  const Frame& frame = pen.frame;
  const std::string causes = joined(explanation.causes);
  pen.prose(causes, frame.palette.warning);
  for (const auto* mistake : explanation.mistakes)
    pen.prose(std::string(mistake->about) + " " + mistake->remedy, frame.palette.dim);
  pen.skip(4);
  const std::string name = "compare/show_mistake/" + std::to_string(k);
  if (button(pen, name, "Show me this mistake", "Makes it in the live model; undo takes it back"))
    frame.commands.edit(core::editing::ReplaceModel{explanation.model, "mistake: " + causes});
}

void draw_causes(Pen& pen, const TensorCheck& check) {
  const Frame& frame = pen.frame;
  const auto& found = check.report.explanations;
  if (!found.empty()) {
    pen.prose(found.size() == 1
                  ? "Likely cause, which explains every tensor:"
                  : "These explain every tensor equally well, and the tensors cannot tell them apart:",
              frame.palette.text);
    for (std::size_t k = 0; k < found.size(); ++k) draw_explanation(pen, found[k], k);
  } else if (check.searched) {
    pen.prose("None of the known mistakes, alone or in pairs, explains all of the tensors.",
              frame.palette.dim);
  } else {
    pen.skip(4);
    if (button(pen, "compare/search", "Find the cause",
               "Tries every known mistake, alone and in pairs, for at most three seconds"))
      frame.commands.add(SearchCauses{});
  }
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
  const TensorCheck& check = *frame.comparison->tensors;
  if (!check.problem.empty()) {
    headline(pen, "Nothing to compare", "", frame.palette.warning);
    pen.prose(check.problem, frame.palette.dim);
  } else if (check.report.agrees) {
    headline(pen, "First difference", "none", frame.palette.good);
    pen.prose("Every tensor agrees with the live model within the tolerance.", frame.palette.dim);
  } else {
    const auto* first = check.report.first_difference();
    headline(pen, "First difference", core::attention::info(first->stage).title, frame.palette.warning);
    if (!first->obstacle.empty()) pen.prose(first->tensor + ": " + first->obstacle, frame.palette.dim);
    draw_causes(pen, check);
  }
  for (const std::string& name : check.matched.left_out) pen.prose("left out: " + name, frame.palette.faint);
  pen.skip(4);
  if (button(pen, "compare/match", "Match tensors by hand…", "Says which tensor is which stage"))
    frame.commands.add(ShowDialog{Dialog::match_tensors});
}

void draw_match_dialog(const Frame& frame) {
  const float width = std::min(frame.metrics.px(620), ImGui::GetIO().DisplaySize.x - frame.metrics.px(80));
  if (frame.view.reference >= frame.references.size() || !frame.references[frame.view.reference].tensors) {
    widgets::paragraph(frame.fonts.sans15, frame.palette.dim, width, "There are no tensors to be matched.");
  } else {
    const Reference& reference = frame.references[frame.view.reference];
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
