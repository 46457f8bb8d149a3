#include "app/ui/panels/layers/whole_panel.hpp"

#include <algorithm>
#include <cmath>

#include "app/session/whole_reading.hpp"
#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/layers/prompt.hpp"
#include "app/ui/panels/layers/selected_head.hpp"
#include "app/ui/widgets/buttons.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/hit_area.hpp"
#include "app/ui/widgets/number_text.hpp"
#include "app/ui/widgets/text.hpp"

namespace app::panels {
namespace {

constexpr std::size_t most_layer_buttons = 8;

/// 957 k, 124 M.
std::string amount(double count) {
  if (count < 1e4) return widgets::fixed(count, 0);
  if (count < 1e6) return widgets::fixed(count / 1e3, 0) + " k";
  if (count < 1e9) return widgets::fixed(count / 1e6, count < 1e8 ? 1 : 0) + " M";
  return widgets::fixed(count / 1e9, 1) + " G";
}

void draw_sizes(const Frame& frame, float width) {
  const auto& model = frame.newest.whole->model->description();
  const auto& sizes = model.sizes;
  widgets::section_heading(frame, width, "MODEL", model.family);
  const std::string name = model.path.filename().string();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  widgets::draw_text_within(frame.fonts.sans16, at, width, frame.palette.text, name);
  const float pitch = frame.metrics.px(22), half = width / 2;
  float y = at.y + frame.metrics.px(28);
  const auto pair = [&](float x, const char* words, const std::string& number) {
    widgets::draw_text(frame.fonts.sans14, {x, y}, frame.palette.dim, words);
    widgets::draw_text_right(frame.fonts.mono13, x + half - frame.metrics.px(12), y, frame.palette.text,
                             number);
  };
  const std::string heads = std::to_string(sizes.n_heads) +
                            (sizes.n_groups == sizes.n_heads ? "" : " : " + std::to_string(sizes.n_groups));
  pair(at.x, "layers", std::to_string(sizes.n_layers));
  pair(at.x + half, "heads", heads);
  y += pitch;
  pair(at.x, "width", std::to_string(sizes.d_model));
  pair(at.x + half, "context", std::to_string(sizes.n_context));
  y += pitch;
  pair(at.x, "vocab", std::to_string(sizes.n_vocabulary));
  pair(at.x + half, "params", amount(model.n_parameters));
  platform::move_to(at);
  ImGui::Dummy({width, y + pitch - at.y});
}

void rule(const Frame& frame, float width) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float y = std::round(at.y + frame.metrics.px(6));
  ImGui::GetWindowDrawList()->AddRectFilled({at.x, y}, {at.x + width, y + 1}, packed(frame.palette.line));
  ImGui::Dummy({width, frame.metrics.px(12)});
}

/// What a share adds, as a bar from the middle and a number.
void draw_share(const Frame& frame, const char* words, double value, double end, float width) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float middle = at.y + frame.metrics.px(10), left = at.x + frame.metrics.px(60),
              right = at.x + width - frame.metrics.px(64);
  widgets::draw_text(frame.fonts.sans14, {at.x, middle}, widgets::Align::left_middle,
                     packed(frame.palette.dim), words);
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float top = middle - frame.metrics.px(4), bottom = middle + frame.metrics.px(4),
              zero = (left + right) / 2;
  list->AddRectFilled({left, top}, {right, bottom}, packed(frame.palette.control.rest));
  const double share = end > 0 ? std::clamp(value / end, -1.0, 1.0) : 0;
  const float to = zero + static_cast<float>(share) * (right - left) / 2;
  list->AddRectFilled(
      {std::min(zero, to), top}, {std::max(zero, to), bottom},
      packed(render::color_at(frame.shown.look.colors.diverging, frame.palette.dark, 0.5 + share / 2)));
  list->AddRectFilled({zero, top - 2}, {zero + 1, bottom + 2}, packed(frame.palette.faint));
  widgets::draw_text(frame.fonts.mono13, {at.x + width, middle}, widgets::Align::right_middle,
                     packed(frame.palette.text), signed_text(value, 2));
  ImGui::Dummy({width, frame.metrics.px(20)});
}

void draw_layer_shares(const Frame& frame, float width) {
  const Prediction* next = frame.newest.reading->prediction();
  if (!next || !next->adds) return;
  const std::size_t layer = frame.newest.whole->experiment.layer;
  const auto& adds = *next->adds;
  if (layer >= adds.mlps.size()) return;
  double heads = adds.besides[layer], end = 0;
  for (const double head : adds.heads[layer]) heads += head;
  for (std::size_t l = 0; l < adds.mlps.size(); ++l) {
    double sum = adds.besides[l];
    for (const double head : adds.heads[l]) sum += head;
    end = std::max({end, std::abs(sum), std::abs(adds.mlps[l])});
  }
  const ImVec2 at = ImGui::GetCursorScreenPos();
  widgets::draw_text_within(
      frame.fonts.sans14, at, width, frame.palette.dim,
      "Layer " + std::to_string(layer) + " adds to the logit of " + quoted_token(next->chosen.text));
  ImGui::Dummy({width, frame.metrics.px(18)});
  draw_share(frame, "heads", heads, end, width);
  draw_share(frame, "MLP", adds.mlps[layer], end, width);
}

void draw_layers_chooser(const Frame& frame, float width) {
  const std::size_t n = frame.newest.whole->model->description().sizes.n_layers,
                    now = frame.newest.whole->experiment.layer;
  widgets::section_heading(frame, width, "LAYER", "");
  const ImVec2 heading = ImGui::GetItemRectMax();
  widgets::draw_text(frame.fonts.sans13, {heading.x, heading.y - frame.metrics.px(12)},
                     widgets::Align::right_middle, packed(frame.palette.faint), "Page Up · Page Down");
  if (n <= most_layer_buttons) {
    std::vector<std::string> words;
    for (std::size_t l = 0; l < n; ++l) words.push_back(std::to_string(l));
    if (const auto chosen = widgets::segmented(frame, "whole/layer", words, now))
      frame.commands.add(LookAtLayer{*chosen});
  } else {
    std::vector<widgets::Option> options;
    for (std::size_t l = 0; l < n; ++l) options.push_back({std::to_string(l), "", false});
    if (const auto chosen = widgets::combo(frame, "whole/layer", frame.metrics.px(96),
                                           std::to_string(now) + " of " + std::to_string(n), options, now))
      frame.commands.add(LookAtLayer{*chosen});
  }
  draw_layer_shares(frame, width);
}

/// A line with a cross; true when the cross was pressed.
bool draw_edit(const Frame& frame, const std::string& name, const std::string& words, float width) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float height = frame.metrics.frame, cross = height;
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(at, {at.x + width, at.y + height}, packed(frame.palette.control.rest),
                      frame.metrics.px(3));
  const float middle = at.y + height / 2, square = frame.metrics.px(3);
  list->AddRectFilled({at.x + frame.metrics.px(8), middle - square},
                      {at.x + frame.metrics.px(8) + 2 * square, middle + square},
                      packed(frame.palette.accent));
  widgets::draw_text_within(
      frame.fonts.sans14, {at.x + frame.metrics.px(22), widgets::centred_y(frame.fonts.sans14, at.y, height)},
      width - cross - frame.metrics.px(26), frame.palette.text, words);
  platform::move_to({at.x + width - cross, at.y});
  const bool pressed = widgets::hit_area(name.c_str(), {cross, height});
  frame.landmarks.mark_item(name);
  widgets::tooltip("Undo this alone");
  const Rgb ink = ImGui::IsItemHovered() || ImGui::IsItemFocused() ? frame.palette.text : frame.palette.dim;
  const ImVec2 centre(at.x + width - cross / 2, middle);
  const float arm = frame.metrics.px(4);
  list->AddLine({centre.x - arm, centre.y - arm}, {centre.x + arm, centre.y + arm}, packed(ink), 1.5f);
  list->AddLine({centre.x - arm, centre.y + arm}, {centre.x + arm, centre.y - arm}, packed(ink), 1.5f);
  platform::move_to(at);
  ImGui::Dummy({width, height + frame.metrics.px(2)});
  return pressed;
}

void draw_edits(const Frame& frame, float width) {
  const auto& experiment = frame.newest.whole->experiment;
  const std::size_t count = experiment.heads_off.size() + experiment.layers.size();
  widgets::section_heading(frame, width, "EDITS", std::to_string(count));
  if (count == 0) {
    widgets::paragraph(
        frame.fonts.sans14, frame.palette.faint, width,
        "None: the model is as it was opened. x switches the chosen head off; every number of a "
        "layer is edited in Stages.");
    return;
  }
  for (const auto& [layer, head] : experiment.heads_off) {
    const std::string name = std::to_string(layer) + "." + std::to_string(head);
    if (draw_edit(frame, "whole/edit/" + name, "head " + name + " off", width))
      frame.commands.add(SwitchHead{layer, head});
  }
  for (const auto& [layer, edit] : experiment.layers) {
    std::string words = "layer " + std::to_string(layer);
    for (const std::string& done : edit.words) words += (&done == &edit.words.front() ? ": " : ", ") + done;
    if (draw_edit(frame, "whole/edit/" + std::to_string(layer), words, width))
      frame.commands.add(DropEdits{layer});
  }
  if (widgets::button(frame, "whole/undo_all", "undo all", "The model as it was opened; the text stays"))
    frame.commands.add(DropEdits{});
  ImGui::SameLine();
  if (widgets::button(frame, "whole/compare", "compare with before",
                      "This layer before all edits as A, stage by stage against what it is now"))
    frame.commands.add(CompareEdits{});
}

}  // namespace

void draw_whole(const Frame& frame) {
  if (!frame.newest.whole) return;
  const float width = ImGui::GetContentRegionAvail().x;
  draw_sizes(frame, width);
  rule(frame, width);
  draw_prompt(frame, width);
  rule(frame, width);
  draw_layers_chooser(frame, width);
  rule(frame, width);
  draw_edits(frame, width);
}

}  // namespace app::panels
