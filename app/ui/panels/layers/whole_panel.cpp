#include "app/ui/panels/layers/whole_panel.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "app/session/navigation.hpp"
#include "app/session/whole_reading.hpp"
#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/layers/head_map.hpp"
#include "app/ui/panels/layers/next_token.hpp"
#include "app/ui/panels/layers/prompt.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/fields.hpp"
#include "app/ui/widgets/hit_area.hpp"
#include "app/ui/widgets/text.hpp"
#include "core/base/text.hpp"

namespace app::panels {

namespace {

using core::experiment::Reading;
using core::transformer::HeadRoles;

constexpr std::size_t n_listed = 3;

/// A bar between two ends that begins at zero, of a share of −1 … 1.
void draw_signed_bar(const Frame& frame, ImVec2 left_middle, float right, float zero, double share) {
  const float left = left_middle.x, half = frame.metrics.px(4), top = left_middle.y - half,
              bottom = left_middle.y + half;
  share = std::clamp(share, -1.0, 1.0);
  const float to = zero + static_cast<float>(share) * (right - left) / 2;
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled({left, top}, {right, bottom}, packed(frame.palette.control.rest));
  list->AddRectFilled(
      {std::min(zero, to), top}, {std::max(zero, to), bottom},
      packed(render::color_at(frame.displayed.look.colors.diverging, frame.palette.dark, 0.5 + share / 2)));
  list->AddRectFilled({zero, top - 2}, {zero + 1, bottom + 2}, packed(frame.palette.faint));
}

struct Lines {
  const Frame& frame;
  float width;

  float column() const { return frame.metrics.px(52); }

  /// A line across, and a heading with what stands over the columns of numbers.
  void heading(const std::string& words, const char* first, const char* second) const {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float y = at.y + frame.metrics.px(8);
    widgets::draw_text(frame.fonts.sans15, {at.x, y}, frame.palette.text, words);
    widgets::draw_text_right(frame.fonts.sans13, at.x + width, y + 1, frame.palette.faint, second);
    widgets::draw_text_right(frame.fonts.sans13, at.x + width - column(), y + 1, frame.palette.faint, first);
    ImGui::Dummy({width, frame.metrics.px(30)});
  }

  /// Words, a bar of a share 0 … 1, and one number or two.
  void share(const std::string& words, std::optional<double> value, const std::string& first,
             const std::string& second, float words_width) const {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float middle = at.y + frame.metrics.px(10), left = at.x + words_width,
                right = at.x + width - column() - (first.empty() ? 0 : column()) - frame.metrics.px(4);
    widgets::draw_text(frame.fonts.sans14, {at.x, middle}, widgets::Align::left_middle,
                       packed(frame.palette.dim),
                       widgets::shortened(frame.fonts.sans14, words, words_width - frame.metrics.px(8)));
    ImDrawList* list = ImGui::GetWindowDrawList();
    const float top = middle - frame.metrics.px(4), bottom = middle + frame.metrics.px(4);
    list->AddRectFilled({left, top}, {right, bottom}, packed(frame.palette.control.rest));
    if (value)
      list->AddRectFilled({left, top},
                          {left + (right - left) * static_cast<float>(std::clamp(*value, 0.0, 1.0)), bottom},
                          packed(render::color_at(frame.displayed.look.colors.sequential, frame.palette.dark,
                                                  0.25 + 0.7 * *value)));
    if (!first.empty())
      widgets::draw_text(frame.fonts.mono13, {at.x + width - column(), middle}, widgets::Align::right_middle,
                         packed(frame.palette.text), first);
    widgets::draw_text(frame.fonts.mono13, {at.x + width, middle}, widgets::Align::right_middle,
                       packed(first.empty() ? frame.palette.text : frame.palette.dim), second);
    ImGui::Dummy({width, frame.metrics.px(21)});
  }

  /// Words, a bar from the middle, a number with its sign.
  void change(const std::string& words, std::optional<double> value, double end) const {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float middle = at.y + frame.metrics.px(10), left = at.x + width * 0.42f,
                right = at.x + width - column() - frame.metrics.px(8), zero = std::round((left + right) / 2);
    widgets::draw_text(frame.fonts.sans14, {at.x, middle}, widgets::Align::left_middle,
                       packed(frame.palette.dim), words);
    draw_signed_bar(frame, {left, middle}, right, zero, value && end > 0 ? *value / end : 0);
    widgets::draw_text(frame.fonts.mono13, {at.x + width, middle}, widgets::Align::right_middle,
                       packed(frame.palette.text), value ? widgets::signed_text(*value, 2) : "–");
    ImGui::Dummy({width, frame.metrics.px(21)});
  }
};

std::string figure(const std::optional<double>& value) {
  return value ? widgets::fixed(*value, 2) : "–";
}

void draw_roles(const Lines& lines, const HeadRoles& here, const HeadRoles* usual) {
  lines.heading("Attends to", usual ? "prompt" : "", usual ? "random" : "prompt");
  const float words = lines.width * 0.44f;
  const auto row = [&](const char* name, const std::optional<double>& now,
                       const std::optional<double>& then) {
    lines.share(name, now, usual ? figure(now) : "", usual ? figure(then) : figure(now), words);
  };
  row("previous token", here.previous, usual ? std::optional(usual->previous) : std::nullopt);
  row("first token", here.first, usual ? std::optional(usual->first) : std::nullopt);
  row("earlier same token", here.same_token, usual ? usual->same_token : std::nullopt);
  row("induction", here.induction, usual ? usual->induction : std::nullopt);
  if (usual)
    widgets::tooltip(
        "Mean weights on this prompt, and on random tokens that repeat, where induction heads show");
}

/// The map of the head with all its names, where the maps of so many heads have no room for theirs.
void draw_names_beside(const Lines& lines, const Reading& now, std::size_t layer, std::size_t head) {
  constexpr std::size_t max_named = 6, max_tokens = 48;
  const auto& sight = *now.layers[layer];
  if (now.layers.size() <= max_named && sight.heads.size() <= max_named) return;
  if (now.block != 1 || now.names.size() > max_tokens) return;
  const std::string bits = "entropy " + widgets::fixed(sight.heads[head].roles.entropy_bits, 2) + " bits";
  lines.heading("Weights of this prompt", "", bits.c_str());
  const float height = draw_named_head(lines.frame, layer, head, ImGui::GetCursorScreenPos(), lines.width);
  ImGui::Dummy({lines.width, height + lines.frame.metrics.px(8)});
}

/// The largest weights of the query that is looked from.
void draw_query(const Lines& lines, const Reading& now, const core::transformer::HeadMap& head) {
  if (now.block != 1) return;
  const auto& pinned = lines.frame.displayed.look.tokens.pinned_query;
  const std::size_t n = now.names.size(), row = pinned && *pinned < n ? *pinned
                                                : now.place           ? now.place->row
                                                                      : n - 1;
  lines.heading("Row of " + widgets::quoted_token(now.names[row]) + " " + std::to_string(row), "", "weight");
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  const std::size_t count = std::min(n_listed, n);
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    [&](std::size_t a, std::size_t b) { return head.map(row, a) > head.map(row, b); });
  for (std::size_t k = 0; k < count; ++k)
    lines.share(std::to_string(order[k]) + "  " + widgets::visible_token(now.names[order[k]]),
                head.map(row, order[k]), "", widgets::fixed(head.map(row, order[k]), 2), lines.width * 0.44f);
}

void draw_effects(const Lines& lines, std::size_t layer, std::size_t head, bool is_off) {
  const Frame& frame = lines.frame;
  const WholeReading& reading = *frame.pending.reading;
  const Prediction* next = reading.prediction();
  if (!next || next->table.empty()) return;
  lines.heading("Effect", "", ("logit of " + widgets::quoted_token(next->chosen.text)).c_str());
  std::optional<double> adds;
  if (next->adds && head < next->adds->heads[layer].size()) adds = next->adds->heads[layer][head];
  const auto effect = reading.effects().of({layer, head});
  const double end = std::max(
      {next->largest_addition, adds ? std::abs(*adds) : 0.0, effect ? std::abs(effect->logit_change) : 0.0});
  lines.change("direct attribution", adds, end);
  if (!next->adds)
    widgets::tooltip(frame.pending.whole->model->description().is_attached
                         ? "Not available for an attached model: PyTorch does not tell the parts of a logit."
                         : "Not defined here: the logits of this model are not sums of what its heads add.");
  lines.change("ablation effect", effect ? std::optional(effect->logit_change) : std::nullopt, end);
  if (effect && !is_off)
    widgets::paragraph(frame.fonts.sans14, frame.palette.dim, lines.width,
                       "Ablating it: P(" + widgets::visible_token(next->chosen.text) + ") " +
                           widgets::fixed(next->chosen.now * 100, 1) + " % → " +
                           widgets::fixed(effect->probability * 100, 1) + " %");
}

}  // namespace

void draw_selected_head(const Frame& frame) {
  if (!has_next_token(frame)) return;
  const float width = ImGui::GetContentRegionAvail().x;
  draw_token_table(frame, width);
  const Reading& now = *frame.pending.reading->readings()->now;
  const std::size_t layer = std::min(frame.pending.whole->experiment.layer, now.layers.size() - 1),
                    head = frame.pending.look.head;
  if (head >= now.layers[layer]->heads.size()) return;
  const auto& sight = now.layers[layer]->heads[head];
  const bool is_off = frame.pending.whole->experiment.heads_off.contains({layer, head});
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImGui::GetWindowDrawList()->AddRectFilled({at.x, at.y + frame.metrics.px(4)},
                                            {at.x + width, at.y + frame.metrics.px(4) + 1},
                                            packed(frame.palette.line));
  const float middle = at.y + frame.metrics.px(26);
  widgets::draw_text(frame.fonts.sans19, {at.x, middle}, widgets::Align::left_middle,
                     packed(frame.palette.text),
                     "Head " + std::to_string(layer) + "." + std::to_string(head));
  draw_role(frame, role_of(frame, layer, head), frame.fonts.sans14, at.x + width, false, middle, width / 2);
  ImGui::Dummy({width, frame.metrics.px(40)});
  const Lines lines{frame, width};
  const auto* usual = frame.pending.reading->random_roles();
  const bool has_usual = usual && layer < usual->size() && head < (*usual)[layer].size();
  draw_names_beside(lines, now, layer, head);
  draw_roles(lines, sight.roles, has_usual ? &(*usual)[layer][head] : nullptr);
  draw_query(lines, now, sight);
  draw_effects(lines, layer, head, is_off);
  ImGui::Dummy({width, frame.metrics.px(4)});
  if (widgets::button(frame, "head/stages", "Open in Stages",
                      "Shows every stage of this head, number by number"))
    frame.commands.add(OpenInStages{Stage::weights});
  ImGui::SameLine();
  if (widgets::button(frame, "head/switch", is_off ? "Enable" : "Ablate",
                      is_off ? "Restores the head (X)" : "Sets the output of this head to zero (X)"))
    frame.commands.add(SwitchHead{layer, head});
}

namespace {

constexpr std::size_t most_layer_buttons = 8;

/// What the model is, in a sentence.
std::string description(const Frame& frame) {
  const auto& model = frame.pending.whole->model->description();
  const std::string sizes = "A " + model.family + " with " +
                            widgets::grouped(static_cast<std::size_t>(model.n_parameters)) +
                            " parameters and " + widgets::grouped(model.sizes.n_vocabulary) + " tokens";
  const bool is_own = std::ranges::find(frame.forms.models, model.path) != frame.forms.models.end();
  return sizes + (is_own ? ", trained on Jane Austen’s six novels." : ".");
}

void draw_sizes(const Frame& frame, float width) {
  const auto& model = frame.pending.whole->model->description();
  const auto& sizes = model.sizes;
  widgets::section_heading(frame, width, "MODEL", model.family);
  const std::string name = model.path.filename().string();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  widgets::draw_text_within(frame.fonts.sans16, at, width, frame.palette.text, name);
  ImGui::Dummy({width, frame.metrics.px(22)});
  widgets::paragraph(frame.fonts.sans13, frame.palette.faint, width, description(frame));
  const ImVec2 below = ImGui::GetCursorScreenPos();
  const float pitch = frame.metrics.px(22), half = width / 2;
  float y = below.y + frame.metrics.px(2);
  const auto pair = [&](float x, const char* words, const std::string& number) {
    widgets::draw_text(frame.fonts.sans14, {x, y}, frame.palette.dim, words);
    widgets::draw_text_right(frame.fonts.mono13, x + half - frame.metrics.px(12), y, frame.palette.text,
                             number);
  };
  const std::string heads = std::to_string(sizes.n_heads) +
                            (sizes.kv_heads == sizes.n_heads ? "" : " : " + std::to_string(sizes.kv_heads));
  pair(at.x, "layers", std::to_string(sizes.n_layers));
  pair(at.x + half, "heads", heads);
  y += pitch;
  pair(at.x, "d_model", std::to_string(sizes.d_model));
  pair(at.x + half, "context", widgets::grouped(sizes.n_context));
  platform::move_to(below);
  ImGui::Dummy({width, y + pitch - below.y});
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
  draw_signed_bar(frame, {left, middle}, right, (left + right) / 2, end > 0 ? value / end : 0);
  widgets::draw_text(frame.fonts.mono13, {at.x + width, middle}, widgets::Align::right_middle,
                     packed(frame.palette.text), widgets::signed_text(value, 2));
  ImGui::Dummy({width, frame.metrics.px(20)});
}

void draw_layer_shares(const Frame& frame, float width) {
  const Prediction* next = frame.pending.reading->prediction();
  if (!next || !next->adds) return;
  const std::size_t layer = frame.pending.whole->experiment.layer;
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
      "Layer " + std::to_string(layer) + " adds to the logit of " + widgets::quoted_token(next->chosen.text));
  ImGui::Dummy({width, frame.metrics.px(18)});
  draw_share(frame, "heads", heads, end, width);
  draw_share(frame, "MLP", adds.mlps[layer], end, width);
}

void draw_layers_chooser(const Frame& frame, float width) {
  const std::size_t n = frame.pending.whole->model->description().sizes.n_layers,
                    now = frame.pending.whole->experiment.layer;
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
  widgets::tooltip("Undoes this edit alone");
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
  const auto& experiment = frame.pending.whole->experiment;
  const std::size_t count = experiment.heads_off.size() + experiment.layers.size();
  widgets::section_heading(frame, width, "EDITS", std::to_string(count));
  if (count == 0) {
    widgets::paragraph(
        frame.fonts.sans14, frame.palette.faint, width,
        "None: the model is as it was opened. X ablates the selected head; every number of a layer can be edited "
        "in Stages.");
    return;
  }
  for (const auto& [layer, head] : experiment.heads_off) {
    const std::string name = std::to_string(layer) + "." + std::to_string(head);
    if (draw_edit(frame, "whole/edit/" + name, "Head " + name + " ablated", width))
      frame.commands.add(SwitchHead{layer, head});
  }
  for (const auto& [layer, edit] : experiment.layers) {
    std::string words = "Layer " + std::to_string(layer);
    for (const std::string& done : edit.words) words += (&done == &edit.words.front() ? ": " : ", ") + done;
    if (draw_edit(frame, "whole/edit/" + std::to_string(layer), words, width))
      frame.commands.add(DropEdits{layer});
  }
  if (widgets::button(frame, "whole/undo_all", "Undo all",
                      "Restores the model as it was opened; the prompt stays"))
    frame.commands.add(DropEdits{});
  ImGui::SameLine();
  if (widgets::button(frame, "whole/compare", "Compare with original",
                      "Compares this layer, stage by stage, with what it was before the edits"))
    frame.commands.add(CompareEdits{});
}

}  // namespace

void draw_whole(const Frame& frame) {
  if (!frame.pending.whole) return;
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
