#include <algorithm>
#include <cmath>
#include <map>

#include "core/base/find.hpp"
#include "core/base/text.hpp"
#include "core/check/match.hpp"
#include "core/graph/given.hpp"
#include "core/graph/limits.hpp"
#include "core/importing/stages_in.hpp"

namespace core::importing {
namespace {

using attention::Stage;
using formats::TensorFile;
using formats::TensorInfo;

constexpr double rounding_of_a_row = 0.02;  // of float16 and bfloat16, added up

/// What a name says: a stage that can be given, of which layer, of which head.
struct Said {
  Stage stage = Stage::weights;
  std::string layer;
  std::optional<std::size_t> head;
};

std::optional<Stage> givable(const std::string& base) {
  for (const Stage stage : check::meaning_of(base).stages)
    if (attention::can_be_given(stage)) return stage;
  return std::nullopt;
}

std::optional<Said> said_by(const std::string& name) {
  const check::Name parts = check::split_name(name);
  if (parts.sequence) return std::nullopt;
  if (const auto stage = givable(parts.base)) {
    const std::size_t last = parts.base.find_last_of("./");
    return Said{*stage, last == std::string::npos ? "" : parts.base.substr(0, last), parts.head};
  }
  for (const auto& [base, number, is_parted, behind] : check::without_numbers(name))
    if (const auto stage = givable(base)) return Said{*stage, number, {}};
  return std::nullopt;
}

bool can_be_a_stage(const TensorInfo& info) {
  return info.dtype != formats::Dtype::text && info.shape.size() >= 2 && info.shape.size() <= 5 &&
         std::ranges::all_of(info.shape, [](std::size_t n) { return n > 0; });
}

bool holds_weights(const TensorFile& file, const TensorInfo& info, const core::Token& progress) {
  const formats::Tensor first = file.read(info.name, formats::Shape(info.shape.size() - 2, 0), progress);
  const std::size_t n_columns = info.shape.back();
  bool a_row_counts = false;
  for (std::size_t at = 0; at < first.numbers.size(); at += n_columns) {
    double sum = 0;
    for (std::size_t j = 0; j < n_columns; ++j) {
      const double number = first.numbers[at + j];
      if (!(number >= 0 && number <= 1 + rounding_of_a_row)) return false;
      sum += number;
    }
    if (sum != 0 && std::abs(sum - 1) > rounding_of_a_row) return false;  // a padded row is of zeros
    a_row_counts = a_row_counts || sum != 0;
  }
  return a_row_counts;
}

/// Weights under names that say nothing, one tensor a layer: "arr_0", "arr_1", …
std::vector<StageLayer> nameless_weights(const TensorFile& file, const core::Token& progress) {
  std::vector<const TensorInfo*> tensors;
  for (const TensorInfo& info : file.tensors())
    if (info.dtype != formats::Dtype::text) tensors.push_back(&info);
  const bool alike = !tensors.empty() && std::ranges::all_of(tensors, [&](const TensorInfo* info) {
    return can_be_a_stage(*info) && info->shape.size() > 2 && info->shape == tensors.front()->shape &&
           std::max(info->shape.end()[-2], info->shape.back()) <= attention::max_tokens;
  });
  if (!alike || !holds_weights(file, *tensors.front(), progress)) return {};
  std::vector<StageLayer> layers;
  for (const TensorInfo* info : tensors) layers.push_back({info->name, {{Stage::weights, {info->name}}}});
  std::ranges::stable_sort(layers, text::comes_before, &StageLayer::name);
  return layers;
}

const StageSource* find(const StageLayer& layer, Stage stage) {
  return find_by(layer.stages, stage, &StageSource::stage);
}

}  // namespace

std::vector<StageLayer> find_stages(const TensorFile& file, const core::Token& progress) {
  using Heads = std::map<std::size_t, std::string>;
  std::map<std::string, std::map<Stage, Heads>, decltype(&text::comes_before)> layers(text::comes_before);
  for (const TensorInfo& info : file.tensors()) {
    if (!can_be_a_stage(info)) continue;
    const auto said = said_by(info.name);
    if (said) layers[said->layer][said->stage].emplace(said->head.value_or(0), info.name);
  }
  if (layers.empty()) return nameless_weights(file, progress);
  std::vector<StageLayer> result;
  for (const auto& [name, stages] : layers) {
    StageLayer& layer = result.emplace_back(StageLayer{name, {}});
    for (const auto& [stage, heads] : stages) {
      StageSource& source = layer.stages.emplace_back(StageSource{stage, {}});
      for (const auto& [head, tensor] : heads) source.tensors.push_back(tensor);
    }
  }
  return result;
}

std::vector<StageSource> usual_stages(const StageLayer& layer) {
  std::vector<StageSource> usual;
  for (const Stage stage : {Stage::weights, Stage::masked_scores, Stage::scaled_scores, Stage::scores})
    if (const StageSource* source = find(layer, stage); source && usual.empty()) usual.push_back(*source);
  const StageSource *queries = find(layer, Stage::queries), *keys = find(layer, Stage::keys);
  if (usual.empty() && queries && keys) usual = {*queries, *keys};
  if (usual.empty()) return {};
  if (const StageSource* values = find(layer, Stage::values)) usual.push_back(*values);
  return usual;
}

}  // namespace core::importing
