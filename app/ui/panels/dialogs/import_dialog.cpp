#include "app/ui/panels/dialogs/dialogs.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "app/session/jobs.hpp"
#include "app/theme/imgui_compat.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/fields.hpp"
#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/base/text.hpp"
#include "core/graph/given.hpp"
#include "core/graph/stages.hpp"

namespace app::panels {

namespace {

/// Options to select one tensor with least … most dimensions, after "none".
struct TensorOptions {
  std::vector<std::string> names{""};
  std::vector<Option> options{{"none"}};

  TensorOptions(const OpenedTensors& tensors, std::size_t lower, std::size_t upper);
  /// Returns the index of the first chosen tensor; 0 if there is none or it is not among the options.
  std::size_t index_of(const std::vector<std::string>& chosen) const;
};

TensorOptions::TensorOptions(const OpenedTensors& tensors, std::size_t lower, std::size_t upper) {
  for (const core::formats::TensorInfo& info : tensors.file->tensors()) {
    if (info.shape.size() < lower || info.shape.size() > upper || info.dtype == core::formats::Dtype::text)
      continue;
    names.push_back(info.name);
    options.push_back({info.name + " " + core::formats::shape_text(info.shape)});
  }
}

std::size_t TensorOptions::index_of(const std::vector<std::string>& chosen) const {
  for (std::size_t k = 1; k < names.size(); ++k)
    if (!chosen.empty() && names[k] == chosen.front()) return k;
  return 0;
}

using core::formats::checkpoints::ProjectionMapping;
using core::formats::checkpoints::ProjectionSource;

constexpr std::array<const char*, 4> parts{"all of it", "first third", "second third", "last third"};

struct ProjectionRow {
  const char* name;
  ProjectionSource& (*source)(ProjectionMapping&);
};

constexpr std::array projection_rows{
    ProjectionRow{"query", [](ProjectionMapping& m) -> ProjectionSource& { return m.query; }},
    ProjectionRow{"key", [](ProjectionMapping& m) -> ProjectionSource& { return m.key; }},
    ProjectionRow{"value", [](ProjectionMapping& m) -> ProjectionSource& { return m.value; }},
    ProjectionRow{"output", [](ProjectionMapping& m) -> ProjectionSource& {
                    if (!m.output) m.output.emplace();
                    return *m.output;
                  }}};

/// Changes the choices of the form.
template <class Change>
void change_choices(const Frame& frame, Change change) {
  core::importing::Choices choices = frame.forms.import.choices;
  change(choices);
  frame.commands.add(set<&ImportForm::choices>(std::move(choices)));
}

/// Changes the source of one projection in the form.
template <class Change>
void change_source(const Frame& frame, const ProjectionRow& row, Change modify) {
  auto mapping = frame.forms.import.mapping;
  ProjectionSource& source = row.source(mapping);
  modify(source);
  const bool has_weights = !source.weights.empty();
  frame.commands.add(set<&ImportForm::mapping>(std::move(mapping)));
  if (&row == &projection_rows.back()) frame.commands.add(set<&ImportForm::has_output>(has_weights));
}

void choose_tensor(std::vector<std::string>& tensors, const std::string& chosen) {
  tensors.clear();
  if (!chosen.empty()) tensors.push_back(chosen);
}

void draw_row(const FormRows& form, const ProjectionRow& row, const ProjectionSource& source,
              const TensorOptions& weights, const TensorOptions& biases) {
  const Frame& frame = form.frame;
  const std::string landmark = std::string("import/") + row.name;
  form.row(row.name);
  const float part = frame.metrics.px(120), orientation_width = frame.metrics.px(98),
              gap = ImGui::GetStyle().ItemSpacing.x;
  const float room = (form.control_width() - part - orientation_width - 3 * gap) / 2;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const std::size_t weight = weights.index_of(source.weights), bias = biases.index_of(source.biases);
  if (const auto chosen = combo(frame, landmark + "/weight", room, weights.options, weight))
    change_source(frame, row, [tensor = weights.names[*chosen]](ProjectionSource& s) {
      choose_tensor(s.weights, tensor);
    });
  ImGui::SameLine();
  if (const auto on =
          checkbox(frame, landmark + "/turned", "out × in", source.out_by_in,
                   "Rows are outputs, as in torch.nn.Linear; otherwise the weight is used as x·W"))
    change_source(frame, row, [on](ProjectionSource& s) { s.out_by_in = *on; });
  platform::move_to({at.x + room + orientation_width + 2 * gap, at.y});
  const std::size_t which = source.n_parts == 1 ? 0 : source.part + 1;
  std::vector<Option> options;
  for (const char* words : parts) options.push_back({words});
  if (const auto chosen = combo(frame, landmark + "/part", part, options, which, parts[which]))
    change_source(frame, row, [k = *chosen](ProjectionSource& s) {
      s.n_parts = s.n_bias_parts = k == 0 ? 1 : 3;
      s.part = s.bias_part = k == 0 ? 0 : k - 1;
    });
  ImGui::SameLine();
  const std::string shown = bias == 0 ? "no bias" : biases.options[bias].words;
  if (const auto chosen = combo(frame, landmark + "/bias", room, biases.options, bias, shown))
    change_source(frame, row,
                  [tensor = biases.names[*chosen]](ProjectionSource& s) { choose_tensor(s.biases, tensor); });
}

/// Draws a row for each projection selected by hand: its tensor, its orientation (out × in or in × out), the
/// part of it to use, its bias.
///
/// Landmarks "import/query/weight", "import/query/turned", "import/query/part", "import/query/bias" and so
/// on.
void draw_import_mapping(const FormRows& form, const OpenedTensors& tensors) {
  const TensorOptions weights(tensors, 2, 2), biases(tensors, 1, 1);
  ProjectionMapping mapping = form.frame.forms.import.mapping;
  for (const ProjectionRow& row : projection_rows) draw_row(form, row, row.source(mapping), weights, biases);
}

/// Returns the mapping in the form, or nothing until query, key and value are selected.
std::optional<ProjectionMapping> mapping_by_hand(const ImportForm& form) {
  ProjectionMapping mapping = form.mapping;
  if (!form.has_output) mapping.output.reset();
  if (mapping.query.weights.empty() || mapping.key.weights.empty() || mapping.value.weights.empty())
    return std::nullopt;
  return mapping;
}

using core::attention::StageInfo;
using core::formats::TensorInfo;
using core::importing::Choices;
using core::importing::StageSource;

void set_stage_tensor(std::vector<StageSource>& stages, core::attention::Stage stage,
                      const std::string& tensor) {
  std::erase_if(stages, [&](const StageSource& s) { return s.stage == stage; });
  if (!tensor.empty()) stages.push_back({stage, {tensor}});
  std::ranges::sort(stages, {}, &StageSource::stage);
}

void draw_stage_row(const FormRows& form, const StageInfo& stage, const TensorOptions& tensors) {
  const Frame& frame = form.frame;
  const auto& stages = frame.forms.import.choices.stages;
  const auto chosen = std::ranges::find(stages, stage.stage, &StageSource::stage);
  std::size_t current = 0;
  std::string shown = "none";
  if (chosen != stages.end()) {
    current = tensors.index_of(chosen->tensors);
    shown = tensors.options[current].words;
    if (chosen->tensors.size() > 1) shown += fmt::format(" and {} heads more", chosen->tensors.size() - 1);
  }
  form.row(stage.title);
  if (const auto next = combo(frame, std::string("import/stage/") + stage.name, form.control_width(),
                              tensors.options, current, shown))
    change_choices(frame, [&](core::importing::Choices& c) {
      set_stage_tensor(c.stages, stage.stage, tensors.names[*next]);
    });
}

bool is_found(const ImportForm& form, const OpenedTensors& tensors) {
  return tensors.stages.size() > 1 && form.layer < tensors.stages.size() &&
         form.choices.stages == core::importing::default_stages(tensors.stages[form.layer]);
}

/// Number of layers to choose from, by name or along the first axis, and why they cannot be used, or "".
struct LayerChoices {
  std::size_t n = 0;
  bool by_name = false, has_four_axes = false;
  std::string problem;
};

LayerChoices layer_choices(const ImportForm& form, const OpenedTensors& tensors) {
  LayerChoices layers;
  if (is_found(form, tensors)) {
    layers.by_name = true;
    layers.n = tensors.stages.size();
    return layers;
  }
  for (const StageSource& source : form.choices.stages) {
    const TensorInfo* info = tensors.file->find(source.tensors.front());
    layers.has_four_axes |= info && info->shape.size() == 4 && info->shape[0] > 1;
  }
  try {
    layers.n =
        core::importing::count_layers(*tensors.file, form.choices.stages, form.choices.first_axis_is_batch);
  } catch (const core::Error& error) {
    layers.problem = error.what();
  }
  return layers;
}

void draw_layer_row(const FormRows& rows, const OpenedTensors& tensors) {
  const Frame& frame = rows.frame;
  const ImportForm& form = frame.forms.import;
  const LayerChoices layers = layer_choices(form, tensors);
  if (layers.n == 0 && !layers.has_four_axes) return;
  rows.row(layers.n > 0 ? "layer" : "");
  if (layers.n > 0) {
    std::vector<Option> options;
    for (std::size_t k = 0; k < layers.n; ++k)
      options.push_back({std::to_string(k) + (layers.by_name ? "  " + tensors.stages[k].name : "")});
    const std::size_t current = std::min(form.layer, layers.n - 1);
    if (const auto next = combo(frame, "import/stage_layer", frame.metrics.px(240), options, current)) {
      frame.commands.add(set<&ImportForm::layer>(*next));
      if (layers.by_name)
        change_choices(frame, [&](core::importing::Choices& c) {
          c.stages = core::importing::default_stages(tensors.stages[*next]);
        });
    }
    ImGui::SameLine();
  }
  if (!layers.has_four_axes) return;
  if (const auto on = checkbox(frame, "import/batch", "the first axis counts sequences, not layers",
                               form.choices.first_axis_is_batch))
    change_choices(frame, [&](core::importing::Choices& c) { c.first_axis_is_batch = *on; });
}

/// Draws the choice of a tensor for each stage that can be given. Landmarks "import/stage/weights" and so on.
void draw_import_stages(const Frame& frame, const OpenedTensors& tensors, float width) {
  const TensorOptions options(tensors, 2, 5);
  const auto list = core::attention::givable_stages();
  const std::size_t n_lines = (list.size() + 1) / 2;
  const FormRows form(frame, "stages", width, 2);
  for (std::size_t k = 0; k < n_lines; ++k) {
    draw_stage_row(form, *list[k], options);
    if (k + n_lines < list.size()) draw_stage_row(form, *list[k + n_lines], options);
  }
}

/// Returns the choices of the form for given stages, or nothing while no stage is selected.
std::optional<Choices> stages_by_hand(const ImportForm& form, const OpenedTensors& tensors) {
  if (form.choices.stages.empty()) return std::nullopt;
  Choices choices = form.choices;
  choices.embeddings.clear();
  choices.embeddings_tensor.clear();
  const LayerChoices layers = layer_choices(form, tensors);
  if (layers.n > 0) choices.layer = std::to_string(std::min(form.layer, layers.n - 1));
  // Stages found by name are found again for the selected layer.
  if (layers.by_name || (tensors.stages.size() == 1 &&
                         choices.stages == core::importing::default_stages(tensors.stages.front())))
    choices.stages.clear();
  return choices;
}

void draw_layer_line(const FormRows& rows, const OpenedTensors& tensors) {
  const Frame& frame = rows.frame;
  const ImportForm& form = frame.forms.import;
  std::vector<Option> options;
  for (std::size_t k = 0; k < tensors.layers.size(); ++k)
    options.push_back({fmt::format("{}  {}", k, tensors.layers[k].prefix), tensors.layers[k].naming->about});
  rows.row("layer");
  const std::size_t current = std::min(form.layer, options.size() - 1);
  if (const auto chosen = combo(frame, "import/layer", frame.metrics.px(320), options, current))
    frame.commands.add(set<&ImportForm::layer>(*chosen));
  ImGui::SameLine();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImFont* font = frame.fonts.sans14;
  draw_text_within(font, {at.x, centered_y(font, at.y, frame.metrics.frame)}, rows.control_width(),
                   frame.palette.dim, tensors.layers[current].naming->about);
}

const core::importing::ExpectedLayer& chosen_layer(const ImportForm& form, const OpenedTensors& tensors) {
  return tensors.expected[std::min(form.layer, tensors.expected.size() - 1)];
}

/// Returns what the choice would assume, not use and not compute, if known before it is read.
std::string reservations(const ImportForm& form, const OpenedTensors& tensors) {
  if (form.as == ImportAs::layer)
    return core::importing::caveats_text(chosen_layer(form, tensors).import_report);
  if (form.as != ImportAs::stages || form.choices.stages.empty()) return "";
  const bool is_found = form.layer < tensors.stages.size();
  return core::importing::caveats_text(core::importing::expected_of_stages(
      *tensors.file, form.choices.stages, is_found ? tensors.stages[form.layer].name : ""));
}

void draw_heads_line(const FormRows& rows, const OpenedTensors& tensors) {
  const Frame& frame = rows.frame;
  const ImportForm& form = frame.forms.import;
  const auto known = form.as == ImportAs::layer ? chosen_layer(form, tensors).n_heads : std::nullopt;
  rows.row("heads");
  const auto step = [](std::uint64_t n, int by) { return by > 0 ? n + 1 : n > 1 ? n - 1 : 1; };
  const std::uint64_t shown = form.choices.n_heads.value_or(known.value_or(1));
  if (const auto n = count_field(frame, "import/heads", "heads", shown, frame.metrics.px(72), step))
    change_choices(frame, [&](core::importing::Choices& c) { c.n_heads = std::max<std::uint64_t>(1, *n); });
  ImGui::SameLine();
  const char* words = form.choices.n_heads           ? "as selected"
                      : known                        ? "from config.json or the names"
                      : form.as == ImportAs::stages  ? "unless the tensors tell"
                      : form.as == ImportAs::by_hand ? ""
                                                     : "no config.json says how many: enter it";
  inline_label(frame, words);
}

/// Draws the choice of embeddings: random numbers, a tensor of this file, or one of another file.
void draw_embeddings_line(const FormRows& rows, const OpenedTensors& tensors) {
  const Frame& frame = rows.frame;
  const ImportForm& form = frame.forms.import;
  rows.row("embeddings");
  const bool alone = form.as == ImportAs::embeddings;
  std::vector<Option> options{alone ? Option{"select a tensor"}
                                    : Option{"8 random tokens", "Standard normal numbers, seed 123"}};
  std::vector<std::string> names{""};
  std::size_t current = 0;
  for (const TensorInfo& info : tensors.file->tensors()) {
    if (info.shape.size() < 2 || info.shape.size() > 3 || info.dtype == core::formats::Dtype::text) continue;
    if (info.name == form.choices.embeddings_tensor && form.choices.embeddings.empty())
      current = options.size();
    options.push_back({info.name + " " + core::formats::shape_text(info.shape), "", names.size() == 1});
    names.push_back(info.name);
  }
  if (const auto chosen = combo(frame, "import/embeddings", frame.metrics.px(240), options, current))
    change_choices(frame, [&](core::importing::Choices& c) {
      c.embeddings.clear(), c.embeddings_tensor = names[*chosen];
    });
  if (alone) return;
  ImGui::SameLine();
  inline_label(frame, "or file");
  tooltip("You can drop a file here");
  FieldStyle style;
  const float tensor_field = frame.metrics.px(110), gap = ImGui::GetStyle().ItemSpacing.x;
  style.width =
      std::max(frame.metrics.px(80),
               rows.control_width() - text_width(frame.fonts.sans15, "tensor") - tensor_field - 2 * gap);
  style.font = frame.fonts.sans14, style.alignment = Alignment::left;
  if (const auto answer = text_field(frame, "import/file", form.choices.embeddings.string(), style);
      answer.text)
    change_choices(frame, [&](core::importing::Choices& c) { c.embeddings = *answer.text; });
  ImGui::SameLine();
  inline_label(frame, "tensor");
  style.width = tensor_field;
  const std::string shown = form.choices.embeddings.empty() ? "" : form.choices.embeddings_tensor;
  if (const auto answer = text_field(frame, "import/file_tensor", shown, style); answer.text)
    change_choices(frame, [&](core::importing::Choices& c) { c.embeddings_tensor = *answer.text; });
}

/// Draws a field for a number that overrides the one found in the file.
template <class Number, class Set>
void draw_setting(const Frame& frame, const char* landmark, const char* words,
                  const std::optional<Number>& value, Set set) {
  inline_label(frame, words);
  FieldStyle style;
  style.width = frame.metrics.px(64), style.font = frame.fonts.mono13;
  const std::string shown = value ? core::text::number_text(static_cast<double>(*value)) : "";
  const auto answer = text_field(frame, landmark, shown, style);
  if (!answer.text) return;
  const auto number = read_number(*answer.text);
  if (number || answer.text->empty())
    change_choices(frame, [&](core::importing::Choices& c) { set(c.settings, number); });
}

/// Draws the settings of attention that override those of the file.
void draw_settings_line(const FormRows& rows) {
  const Frame& frame = rows.frame;
  using core::importing::AttentionSettings;
  using TypedNumber = std::optional<double>;
  const AttentionSettings& settings = frame.forms.import.choices.settings;
  const auto count = [](const TypedNumber& typed) {
    return typed && *typed >= 1 ? std::optional(static_cast<std::size_t>(*typed)) : std::nullopt;
  };
  rows.row("attention");
  const std::vector<Option> options{{"causality as found"},
                                    {"causal", "Each query attends to keys up to its own position", true},
                                    {"not causal", "Each query attends to every key"}};
  const std::size_t current = !settings.causal ? 0 : *settings.causal ? 1 : 2;
  if (const auto chosen = combo(frame, "import/causal", frame.metrics.px(150), options, current))
    change_choices(frame, [&](core::importing::Choices& c) {
      c.settings.causal = *chosen == 0 ? std::nullopt : std::optional(*chosen == 1);
    });
  ImGui::SameLine();
  draw_setting(frame, "import/scale", "scale", settings.scale,
               [](AttentionSettings& s, const TypedNumber& typed) { s.scale = typed; });
  ImGui::SameLine();
  draw_setting(frame, "import/rope", "RoPE base",
               settings.rotary ? std::optional(settings.rotary->base) : std::nullopt,
               [](AttentionSettings& s, const TypedNumber& typed) {
                 s.rotary.reset();
                 if (typed && *typed > 0) s.rotary.emplace().base = *typed;
               });
  rows.row("");
  draw_setting(frame, "import/window", "window", settings.window,
               [&](AttentionSettings& s, const TypedNumber& typed) { s.window = count(typed); });
  ImGui::SameLine();
  draw_setting(frame, "import/kv_heads", "KV heads", settings.n_kv_heads,
               [&](AttentionSettings& s, const TypedNumber& typed) { s.n_kv_heads = count(typed); });
}

void draw_tensor_line(const Frame& frame, const OpenedTensors& tensors, std::size_t index, float width) {
  const TensorInfo& info = tensors.file->tensors()[index];
  const bool is_text = info.dtype == core::formats::Dtype::text;
  ImGui::PushID(static_cast<int>(index));
  const bool chosen = frame.forms.import.measured == info.name;
  if (ImGui::Selectable("##tensor", chosen, ImGuiSelectableFlags_DontClosePopups) && !is_text) {
    frame.commands.add(set<&ImportForm::measured>(info.name));
    frame.commands.add(MeasureTensor{info.name});
  }
  frame.landmarks.mark_item("import/tensor/" + std::to_string(index));
  const ImVec2 at = ImGui::GetItemRectMin();
  ImFont* font = frame.fonts.mono13;
  draw_text_within(font, {at.x + frame.metrics.px(4), at.y}, width * 0.42f, frame.palette.text, info.name);
  draw_text(font, {at.x + width * 0.44f, at.y}, frame.palette.dim, core::formats::dtype_name(info.dtype));
  draw_text(font, {at.x + width * 0.54f, at.y}, frame.palette.dim, core::formats::shape_text(info.shape));
  const auto range = tensors.ranges.find(info.name);
  if (range != tensors.ranges.end())
    draw_text_within(font, {at.x + width * 0.74f, at.y}, width * 0.25f, frame.palette.dim,
                     range_text(range->second));
  ImGui::PopID();
}

void draw_tensor_list(const Frame& frame, const OpenedTensors& tensors, float width) {
  const auto n = static_cast<int>(tensors.file->tensors().size());
  const float pad = frame.metrics.px(6), upper = frame.metrics.px(260), lower = frame.metrics.px(90);
  const float room = std::clamp(ImGui::GetIO().DisplaySize.y - frame.metrics.px(420), lower, upper);
  const float line = platform::font_size(frame.fonts.mono13) + ImGui::GetStyle().ItemSpacing.y;
  const float height = std::min(room, float(n) * line + 2 * pad);
  ImGui::PushStyleColor(ImGuiCol_ChildBg, vec(frame.palette.background.back));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {pad, pad});
  if (platform::begin_child("tensors", {width, height}, false, platform::padded)) {
    platform::push_font(frame.fonts.mono13);
    ImGuiListClipper clipper;
    clipper.Begin(n);
    while (clipper.Step())
      for (int k = clipper.DisplayStart; k < clipper.DisplayEnd; ++k)
        draw_tensor_line(frame, tensors, static_cast<std::size_t>(k), width);
    ImGui::PopFont();
  }
  ImGui::EndChild();
  ImGui::PopStyleVar();
  ImGui::PopStyleColor();
}

/// Returns the choices of the form, or nothing while something is missing.
std::optional<Choices> choices_of(const ImportForm& form, const OpenedTensors& tensors) {
  Choices choices = form.choices;
  if (form.as != ImportAs::stages) choices.stages.clear();
  switch (form.as) {
    case ImportAs::layer:
      choices.layer = std::to_string(std::min(form.layer, tensors.layers.size() - 1));
      return choices;
    case ImportAs::by_hand:
      choices.mapping = mapping_by_hand(form);
      if (!choices.n_heads) choices.n_heads = 1;
      return choices.mapping ? std::optional(choices) : std::nullopt;
    case ImportAs::stages:
      return stages_by_hand(form, tensors);
    case ImportAs::embeddings:
      choices.embeddings.clear();
      return choices.embeddings_tensor.empty() ? std::nullopt : std::optional(choices);
  }
  return std::nullopt;
}

/// Draws the choice of how to open the file, among the possible ones.
void draw_open_as_line(const FormRows& rows, const OpenedTensors& tensors) {
  const Frame& frame = rows.frame;
  std::vector<Option> options;
  std::vector<ImportAs> all;
  const auto offer = [&](ImportAs as, const char* words, const char* help) {
    all.push_back(as), options.push_back({words, help});
  };
  if (!tensors.layers.empty())
    offer(ImportAs::layer, "a layer of the checkpoint", "Finds the projections of one layer by their names");
  offer(ImportAs::stages, "given stages",
        "Weights, scores, or queries, keys and values; what follows is computed");
  offer(ImportAs::by_hand, "projections selected by hand", "Select the tensors of W_q, W_k, W_v and W_o");
  if (tensors.layers.empty())
    offer(ImportAs::embeddings, "embeddings", "A tensor [tokens, columns], or a batch of them");
  const auto place = std::find(all.begin(), all.end(), frame.forms.import.as);
  const auto current = place == all.end() ? 0 : static_cast<std::size_t>(place - all.begin());
  rows.row("open as");
  if (const auto chosen = combo(frame, "import/as", frame.metrics.px(240), options, current))
    frame.commands.add(set<&ImportForm::as>(all[*chosen]));
}

/// Draws the choice whether a first line or column 0, 1, 2 … of a table is names of columns or rows.
void draw_index_choice(const FormRows& rows, const char* label, const char* landmark,
                       std::optional<bool> core::formats::IndexChoice::*are_names,
                       const std::vector<Option>& options) {
  const Frame& frame = rows.frame;
  const std::size_t current = frame.forms.import.choices.index.*are_names == true ? 0 : 1;
  rows.row(label);
  if (const auto chosen = combo(frame, landmark, frame.metrics.px(240), options, current))
    change_choices(frame, [&](core::importing::Choices& c) { c.index.*are_names = *chosen == 0; });
}

/// Draws the choices of the form. Landmarks "import/as", "import/heads", "import/stage_layer", "import/batch"
/// …
void draw_choices(const Frame& frame, const OpenedTensors& tensors, float width) {
  const ImportAs as = frame.forms.import.as;
  {
    const FormRows rows(frame, "kind", width);
    draw_open_as_line(rows, tensors);
    using core::formats::IndexChoice;
    if (tensors.index.line)
      draw_index_choice(rows, "first line", "import/first_line", &IndexChoice::line,
                        {{"names of the columns", "0, 1, 2 … as pandas writes them; the numbers begin below"},
                         {"numbers", "A row like the others"}});
    if (tensors.index.column)
      draw_index_choice(rows, "first column", "import/first_column", &IndexChoice::column,
                        {{"names of the rows", "0, 1, 2 … as pandas writes them"},
                         {"numbers", "A column like the others"}});
  }  // ends the table
  if (as == ImportAs::stages) draw_import_stages(frame, tensors, width);
  const FormRows rows(frame, "choices", width);
  if (as == ImportAs::layer) draw_layer_line(rows, tensors);
  if (as == ImportAs::by_hand) draw_import_mapping(rows, tensors);
  if (as == ImportAs::stages) draw_layer_row(rows, tensors);
  if (as != ImportAs::embeddings) draw_heads_line(rows, tensors);
  draw_settings_line(rows);
  if (as != ImportAs::stages) draw_embeddings_line(rows, tensors);
}

}  // namespace

void draw_import_dialog(const Frame& frame) {
  if (!frame.work.opening || !frame.work.opening->tensors) return close_dialog(frame);
  const OpenedTensors& tensors = *frame.work.opening->tensors;
  const float width = dialog_width(frame, 820);
  paragraph(frame.fonts.sans15, frame.palette.text, width,
            tensors.file->path().filename().string() + " · " + tensors.file->format() + " · " +
                core::text::counted(tensors.file->tensors().size(), "tensor"));
  draw_tensor_list(frame, tensors, width);
  draw_choices(frame, tensors, width);
  if (const std::string words = reservations(frame.forms.import, tensors); !words.empty()) {
    paragraph(frame.fonts.sans14, frame.palette.text, width, words);
    frame.landmarks.mark_item("import/reservations");
  }
  const Message& message = frame.message;
  paragraph(frame.fonts.sans14, message.is_error ? frame.palette.status.bad : frame.palette.dim, width,
            message.text.empty() ? " " : message.text);
  const auto choices = choices_of(frame.forms.import, tensors);
  const bool confirmed = confirm_buttons(frame, width, "Open", choices.has_value()) == "dialog/confirm";
  const bool enter = enter_confirms();
  if (choices && (confirmed || enter)) frame.commands.add(ImportTensors{*choices});
}

bool is_slow_file(const Frame& frame) {
  return frame.work.opening && frame.work.opening->is_reading &&
         frame.work.opening->seconds >= busy_delay_seconds;
}

void draw_file_progress_line(const Frame& frame) {
  if (!is_slow_file(frame)) return;
  const Opening& opening = *frame.work.opening;
  std::string words = (opening.is_writing ? "Writing " : "Reading ") + opening.path.filename().string();
  if (opening.bytes > 0) words += fmt::format(": {} MB", opening.bytes / 1000000);
  ImGui::AlignTextToFramePadding();
  ImGui::TextUnformatted(words.c_str());
  ImGui::SameLine();
  if (button(frame, "reading/cancel", "Stop")) frame.commands.add(CancelReading{});
}

void draw_file_progress(const Frame& frame) {
  if (!is_slow_file(frame)) return;
  const ImVec2 size = ImGui::GetIO().DisplaySize;
  ImGui::SetNextWindowPos({size.x / 2, size.y - frame.metrics.px(56)}, ImGuiCond_Always, {0.5f, 1});
  platform::push_font(frame.fonts.sans15);
  if (ImGui::Begin("reading", nullptr,
                   ImGuiWindowFlags_AlwaysAutoResize | ImGuiWindowFlags_NoMove |
                       ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoTitleBar |
                       ImGuiWindowFlags_NoFocusOnAppearing))
    draw_file_progress_line(frame);
  ImGui::End();
  ImGui::PopFont();
}

}  // namespace app::panels
