#include "app/ui/panels/dialogs/import_stages.hpp"

#include <algorithm>

#include "app/ui/panels/dialogs/tensor_options.hpp"
#include "app/ui/widgets/buttons.hpp"
#include "app/ui/widgets/text.hpp"
#include "core/base/error.hpp"
#include "core/graph/given.hpp"
#include "core/graph/stages.hpp"

namespace app::panels {
namespace {

using core::attention::StageInfo;
using core::formats::TensorInfo;
using core::importing::Choices;
using core::importing::StageSource;

void name_stage(std::vector<StageSource>& stages, core::attention::Stage stage, const std::string& tensor) {
  std::erase_if(stages, [&](const StageSource& s) { return s.stage == stage; });
  if (!tensor.empty()) stages.push_back({stage, {tensor}});
  std::ranges::sort(stages, {}, &StageSource::stage);
}

void stage_row(const Frame& frame, const StageInfo& stage, const TensorOptions& tensors, float label,
               float width) {
  const auto& stages = frame.forms.import.choices.stages;
  const auto chosen = std::ranges::find(stages, stage.stage, &StageSource::stage);
  std::size_t current = 0;
  std::string shown = "none";
  if (chosen != stages.end()) {
    current = tensors.index_of(chosen->tensors);
    shown = tensors.options[current].words;
    if (chosen->tensors.size() > 1)
      shown += " and " + std::to_string(chosen->tensors.size() - 1) + " heads more";
  }
  const float left = ImGui::GetCursorPosX();
  ImGui::AlignTextToFramePadding();
  ImGui::TextUnformatted(stage.title);
  ImGui::SameLine(left + label);
  if (const auto next = widgets::combo(frame, std::string("import/stage/") + stage.name, width - label, shown,
                                       tensors.options, current))
    frame.commands.look([which = stage.stage, tensor = tensors.names[*next]](View& v) {
      name_stage(v.forms.import.choices.stages, which, tensor);
    });
}

bool is_found(const ImportForm& form, const OpenedTensors& tensors) {
  return tensors.stages.size() > 1 && form.layer < tensors.stages.size() &&
         form.choices.stages == core::importing::usual_stages(tensors.stages[form.layer]);
}

/// How many layers there are to choose from, by names or by a first axis, and what is wrong with them.
struct Layers {
  std::size_t n = 0;
  bool by_name = false, has_four_axes = false;
  std::string problem;
};

Layers layers_of(const ImportForm& form, const OpenedTensors& tensors) {
  Layers layers;
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
        core::importing::layers_within(*tensors.file, form.choices.stages, form.choices.first_axis_is_batch);
  } catch (const core::Error& error) {
    layers.problem = error.what();
  }
  return layers;
}

void layer_row(const Frame& frame, const OpenedTensors& tensors, float label) {
  const ImportForm& form = frame.forms.import;
  const Layers layers = layers_of(form, tensors);
  if (layers.n > 0) {
    std::vector<widgets::Option> options;
    for (std::size_t k = 0; k < layers.n; ++k)
      options.push_back(
          {std::to_string(k) + (layers.by_name ? "  " + tensors.stages[k].name : ""), "", false});
    const std::size_t current = std::min(form.layer, layers.n - 1);
    const float left = ImGui::GetCursorPosX();
    ImGui::AlignTextToFramePadding();
    ImGui::TextUnformatted("layer");
    ImGui::SameLine(left + label);
    if (const auto next = widgets::combo(frame, "import/stage_layer", frame.metrics.px(240),
                                         options[current].words, options, current))
      frame.commands.look([k = *next, by_name = layers.by_name, stages = tensors.stages](View& v) {
        v.forms.import.layer = k;
        if (by_name) v.forms.import.choices.stages = core::importing::usual_stages(stages[k]);
      });
    ImGui::SameLine();
  }
  if (layers.has_four_axes) {
    if (const auto on =
            widgets::checkbox(frame, "import/batch", "the first axis counts sequences, not layers",
                              form.choices.first_axis_is_batch))
      frame.commands.look([on](View& v) { v.forms.import.choices.first_axis_is_batch = *on; });
  } else {
    ImGui::NewLine();
  }
}

}  // namespace

void draw_import_stages(const Frame& frame, const OpenedTensors& tensors, float width) {
  const TensorOptions options(tensors, 2, 5);
  const auto list = core::attention::givable_stages();
  const float gap = frame.metrics.px(20), half = (width - gap) / 2, label = frame.metrics.px(104);
  const float left = ImGui::GetCursorPosX();
  const std::size_t n_lines = (list.size() + 1) / 2;
  for (std::size_t k = 0; k < n_lines; ++k) {
    stage_row(frame, *list[k], options, label, half);
    if (k + n_lines >= list.size()) continue;
    ImGui::SameLine(left + half + gap);
    stage_row(frame, *list[k + n_lines], options, label, half);
  }
  layer_row(frame, tensors, label);
}

std::optional<Choices> stages_by_hand(const ImportForm& form, const OpenedTensors& tensors) {
  if (form.choices.stages.empty()) return std::nullopt;
  Choices choices = form.choices;
  choices.embeddings.clear();
  choices.embeddings_tensor.clear();
  const Layers layers = layers_of(form, tensors);
  if (layers.n > 0) choices.layer = std::to_string(std::min(form.layer, layers.n - 1));
  // What was found is found again with another layer.
  if (layers.by_name ||
      (tensors.stages.size() == 1 && choices.stages == core::importing::usual_stages(tensors.stages.front())))
    choices.stages.clear();
  return choices;
}

}  // namespace app::panels
