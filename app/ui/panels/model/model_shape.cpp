#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/ui/panels/menus/action_menu.hpp"
#include "app/ui/panels/model/model_rows.hpp"
#include "app/ui/widgets/buttons.hpp"
#include "app/ui/widgets/fields.hpp"
#include "app/ui/widgets/text.hpp"
#include "core/editing/presets.hpp"

namespace app::panels {
namespace {

using namespace core::editing;
using core::attention::Model;

/// Presets of one notebook begin alike: "004", "chapter", "head".
std::string_view group_of(const Preset& preset) {
  const std::string_view name = preset.name;
  return name.substr(0, name.find('-'));
}

void preset_row(const Form& form) {
  const DocumentState& document = form.frame.document;
  const Preset* current = find_preset(document.preset);
  std::string shown = current ? current->title : document.title;
  if (current && !document.is_preset) shown += " · edited";
  std::vector<widgets::Option> options;
  std::size_t index = presets().size();
  std::string_view group = group_of(presets().front());
  for (const Preset& preset : presets()) {
    if (&preset == current) index = options.size();
    const bool first = std::exchange(group, group_of(preset)) != group_of(preset);
    options.push_back({preset.title, preset.about, first});
  }
  if (const auto chosen = widgets::combo(form.frame, "model/preset", form.width, shown, options, index))
    form.frame.commands.add(LoadPreset{presets()[*chosen].name});
  if (ImGui::IsItemClicked(ImGuiMouseButton_Right)) form.frame.commands.add(KeepReference{});
}

/// The second of two fields in a row ends where the row ends.
void second_label(const Form& form, const char* words) {
  ImFont* font = form.frame.fonts.sans15;
  const float roomy = form.label_width() + form.field_width() + form.frame.metrics.px(16);
  const float latest =
      form.width - form.field_width() - form.frame.metrics.px(6) - widgets::text_width(font, words);
  const float x = form.at.x + std::min(roomy, latest);
  widgets::draw_text(font, {x, widgets::centred_y(font, form.at.y, form.frame.metrics.frame)},
                     form.frame.palette.dim, words);
  explain_label(form.frame, {x, form.at.y}, words);
  form.place(form.width - form.field_width());
}

std::uint64_t step_by(std::uint64_t value, int direction, std::uint64_t step) {
  if (direction > 0) return value + step;
  return value > step ? value - step : value;
}

/// The next divisor of d_out, so that stepping never asks for heads that do not fit.
std::uint64_t step_heads(std::uint64_t heads, int direction, std::uint64_t d_out) {
  for (std::uint64_t next = direction > 0 ? heads + 1 : heads - 1; next > 0 && next <= d_out;
       next = direction > 0 ? next + 1 : next - 1)
    if (d_out % next == 0) return next;
  return heads;
}

void tokens_row(const Form& form) {
  const Model& model = form.frame.newest.model;
  form.label("tokens");
  const auto one = [](std::uint64_t v, int direction) { return step_by(v, direction, 1); };
  if (const auto n = widgets::count_field(form.frame, "model/tokens", "tokens", model.n_tokens(),
                                          form.field_width(), one))
    form.frame.commands.edit(SetTokenCount{*n});
  widgets::tooltip("How many tokens the sequence has: rows of X. Up and down change it by one.");
  second_label(form, "heads");
  const auto divisor = [&](std::uint64_t v, int direction) {
    return step_heads(v, direction, model.d_out());
  };
  if (const auto n = widgets::count_field(form.frame, "model/heads", "heads", model.n_heads,
                                          form.field_width(), divisor))
    form.frame.commands.edit(SetHeadCount{*n});
  widgets::tooltip("How many heads share the columns of the projections; a divisor of d_out.");
}

void widths_row(const Form& form) {
  const Model& model = form.frame.newest.model;
  const bool projected = model.projections.has_value();
  form.label("d_in");
  const auto input = [&](std::uint64_t v, int direction) {
    return step_by(v, direction, projected ? 1 : model.n_heads);
  };
  if (const auto n =
          widgets::count_field(form.frame, "model/d_in", "d_in", model.d_model(), form.field_width(), input))
    form.frame.commands.edit(SetInputWidth{*n});
  widgets::tooltip("How many numbers an embedding has: columns of X.");
  second_label(form, "d_out");
  const auto output = [&](std::uint64_t v, int direction) { return step_by(v, direction, model.n_heads); };
  if (!projected) ImGui::BeginDisabled();
  if (const auto n =
          widgets::count_field(form.frame, "model/d_out", "d_out", model.d_out(), form.field_width(), output))
    form.frame.commands.edit(SetOutputWidth{*n});
  if (projected) widgets::tooltip("How many columns queries, keys and values have, over all heads.");
  if (!projected) {
    ImGui::EndDisabled();
    widgets::tooltip("Without projections the values are the embeddings, so d_out is d_in.");
  }
}

void projections_row(const Form& form) {
  form.label("project");
  const char* help =
      "On: queries, keys and values are X times a learned matrix each. Off: all three are X itself.";
  const bool on = form.frame.newest.model.projections.has_value();
  constexpr const char* words = "draw…";
  const float width =
      widgets::text_width(form.frame.fonts.sans14, words) + 2 * ImGui::GetStyle().FramePadding.x;
  const float room = form.control_width() - width - form.frame.metrics.px(16 + 8 + 10);
  const char* all = "to Q, K, V";
  if (widgets::text_width(form.frame.fonts.sans15, all) > room) all = "Q, K, V";
  if (const auto next = widgets::checkbox(form.frame, "model/projections", all, on, help))
    form.frame.commands.edit(SetProjections{*next});
  form.place(form.width - width);
  if (widgets::button(form.frame, "model/draw", words, "Draw all projections from a seed, as PyTorch would"))
    perform("edit/draw_model", situation_of(form.frame), form.frame.commands);
}

void bias_row(const Form& form) {
  form.label("bias");
  const auto& p = *form.frame.newest.model.projections;
  struct Box {
    const char *name, *words;
    Part part;
    bool on;
  };
  const std::array boxes{Box{"model/bias_q", "q", Part::query, p.query.bias.has_value()},
                         Box{"model/bias_k", "k", Part::key, p.key.bias.has_value()},
                         Box{"model/bias_v", "v", Part::value, p.value.bias.has_value()}};
  float offset = form.label_width();
  for (const Box& box : boxes) {
    form.place(offset);
    if (const auto on = widgets::checkbox(form.frame, box.name, box.words, box.on,
                                          "A row of numbers that this projection adds"))
      form.frame.commands.edit(SetBias{box.part, *on});
    offset += std::min(form.frame.metrics.px(58), std::floor(form.control_width() / 3));
  }
}

bool has_layers(const Frame& frame) {
  return frame.document.layers.size() > 1;
}

void layer_row(const Form& form) {
  const DocumentState& document = form.frame.document;
  std::vector<widgets::Option> options;
  for (std::size_t k = 0; k < document.layers.size(); ++k)
    options.push_back(
        {std::to_string(k) + (document.layers[k].empty() ? "" : "  ") + document.layers[k], "", false});
  form.label("layer");
  if (const auto chosen = widgets::combo(form.frame, "model/layer", form.control_width(),
                                         options[document.layer].words, options, document.layer))
    form.frame.commands.add(ChooseLayer{*chosen});
}

bool has_evidence(const Frame& frame) {
  const Preset* preset = frame.document.is_preset ? find_preset(frame.document.preset) : nullptr;
  return preset && preset->evidence != Evidence::drawn;
}
constexpr std::array shape_table{
    ModelRow{always, preset_row, 2},       ModelRow{has_evidence, evidence_row, 0, 8},
    ModelRow{has_layers, layer_row, 2},    ModelRow{always, tokens_row, 2},
    ModelRow{always, widths_row, 0},       ModelRow{always, projections_row, 0},
    ModelRow{has_projections, bias_row, 0}};

}  // namespace

std::span<const ModelRow> shape_rows() {
  return shape_table;
}

}  // namespace app::panels
