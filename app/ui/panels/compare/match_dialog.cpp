#include "app/ui/panels/compare/match_dialog.hpp"

#include <algorithm>
#include <functional>
#include <optional>

#include "app/session/tensor_check.hpp"
#include "app/theme/imgui_compat.hpp"
#include "app/ui/widgets/buttons.hpp"
#include "app/ui/widgets/text.hpp"
#include "core/check/match.hpp"

namespace app::panels {
namespace {

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

/// A choice in words, of which the first is "".
void draw_chooser(const Frame& frame, const char* name, const char* words,
                  const std::vector<widgets::Option>& options, std::size_t now,
                  const std::function<void(std::size_t)>& choose) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float label = frame.metrics.px(110);
  widgets::draw_text(frame.fonts.sans15,
                     {at.x, widgets::centred_y(frame.fonts.sans15, at.y, frame.metrics.frame)},
                     frame.palette.dim, words);
  platform::move_to({at.x + label, at.y});
  if (const auto chosen =
          widgets::combo(frame, name, frame.metrics.px(290), options[now].words, options, now))
    choose(*chosen);
  platform::move_to({at.x, at.y + frame.metrics.pitch});
}

/// In which layout the heads' features are read, and which of several layers.
void draw_reading(const Frame& frame, const Reference& reference) {
  std::vector<widgets::Option> options{{"heads: whichever layout fits", "", false}};
  std::size_t now = 0;
  for (const auto& layout : core::check::layouts()) {
    if (reference.layout == layout.name) now = options.size();
    options.push_back({std::string(layout.name) + ": " + layout.about, "", false});
  }
  draw_chooser(frame, "match/layout", "Layout", options, now, [&](std::size_t k) {
    frame.commands.add(ReadTensorsAs{k == 0 ? "" : core::check::layouts()[k - 1].name, reference.layer});
  });
  const Comparison* comparison = frame.compared.comparison;
  if (!comparison || !comparison->tensors || comparison->key.reference != reference.id) return;
  const auto& matched = comparison->tensors->matched;
  if (matched.layers.size() < 2) return;
  options.clear();
  for (std::size_t k = 0; k < matched.layers.size(); ++k)
    options.push_back({matched.layers[k].empty() ? std::to_string(k) : matched.layers[k], "", false});
  draw_chooser(frame, "match/layer", "Layer", options, matched.layer, [&](std::size_t k) {
    frame.commands.add(ReadTensorsAs{reference.layout, options[k].words});
  });
}

}  // namespace

void draw_match_dialog(const Frame& frame) {
  const float width = std::min(frame.metrics.px(620), ImGui::GetIO().DisplaySize.x - frame.metrics.px(80));
  if (frame.shown.look.compared.reference >= frame.compared.references.size() ||
      !frame.compared.references[frame.shown.look.compared.reference].tensors) {
    widgets::paragraph(frame.fonts.sans15, frame.palette.dim, width, "There are no tensors to be matched.");
  } else {
    const Reference& reference = frame.compared.references[frame.shown.look.compared.reference];
    const std::vector<widgets::Option> options = choices();
    draw_reading(frame, reference);
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
      platform::move_to({at.x + column, at.y});
      const std::size_t now = choice_of(reference, tensor.name);
      if (const auto chosen = widgets::combo(frame, "match/" + std::to_string(k), frame.metrics.px(180),
                                             options[now].words, options, now))
        frame.commands.add(MapTensor{tensor.name, stage_of(*chosen)});
      platform::move_to({at.x, at.y + frame.metrics.pitch});
      ImGui::PopID();
      ++k;
    }
    ImGui::Dummy({1, 1});
    ImGui::EndChild();
  }
  if (widgets::button(frame, "dialog/close", "Close")) frame.commands.add(ShowDialog{Dialog::none});
}

}  // namespace app::panels
