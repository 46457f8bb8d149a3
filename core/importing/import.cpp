#include "core/importing/import.hpp"

#include <algorithm>

#include "core/attention/limits.hpp"
#include "core/error.hpp"
#include "core/formats/checkpoints/projections.hpp"
#include "core/formats/files/file.hpp"
#include "core/formats/readers/tensor_formats.hpp"
#include "core/formats/sessions/session.hpp"
#include "core/importing/embeddings.hpp"
#include "core/importing/stages_in.hpp"

namespace core::importing {
namespace {

using formats::TensorFile;
namespace checkpoints = formats::checkpoints;

/// The number of a layer among all, which a scale may depend on.
std::size_t index_of(const std::vector<checkpoints::Layer>& layers, const checkpoints::Layer& layer) {
  return static_cast<std::size_t>(&layer - layers.data());
}

Imported import_checkpoint(const TensorFile& file, const std::vector<checkpoints::Layer>& layers,
                           const Choices& choices, const core::Token& progress) {
  const checkpoints::Config config = checkpoints::config_beside(file.path());
  const checkpoints::Layer* layer = nullptr;
  if (!choices.mapping)
    layer = &checkpoints::choose_layer(layers, choices.layer.empty() ? "0" : choices.layer, file.place());
  const checkpoints::Layer by_hand{"", nullptr, choices.mapping.value_or(checkpoints::Mapping{}), 0};
  const checkpoints::Layer& chosen = layer ? *layer : by_hand;
  checkpoints::Attention read = checkpoints::read_attention(
      file, chosen.mapping, checkpoints::heads_of(file, chosen, config, choices.n_heads), progress);
  Imported result{{}, std::move(read.notes), {}};
  attention::Model& model = result.model;
  model.n_heads = read.n_heads;
  const std::size_t d_in = read.projections.query.weight->n_rows;
  model.scale = checkpoints::scale_of(config, layer ? index_of(layers, *layer) : 0,
                                      read.projections.query.weight->n_cols / read.n_heads);
  model.projections = std::move(read.projections);
  model.mask.causal = !layer || layer->layout->causal;
  if (layer && *layer->layout->note)
    result.notes.push_back(std::string(layer->layout->about) + "; " + layer->layout->note + ".");
  model.sequences = embeddings_for(file, choices, d_in, result.notes, progress);
  attention::require_within_limits(model, file.place());
  return result;
}

Imported import_embeddings(const TensorFile& file, const Choices& choices, const core::Token& progress) {
  Imported result;
  result.model.sequences = embeddings_in(file, choices.embeddings_tensor, progress);
  result.model.n_heads = choices.n_heads.value_or(1);
  result.notes.push_back(
      "There are no projections in the file: queries, keys and values are the embeddings.");
  attention::require_within_limits(result.model, file.place());
  return result;
}

}  // namespace

bool is_session(const std::filesystem::path& path) {
  if (formats::is_index_of_tensors(path)) return false;
  const std::string begin = formats::read_begin(path, 4096);
  const std::size_t first = begin.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  return first != begin.npos && begin[first] == '{';
}

Imported import_tensors(const TensorFile& file, const Choices& choices, const core::Token& progress) {
  const auto layers = checkpoints::find_layers(file.tensors());
  if (choices.mapping || (!layers.empty() && choices.stages.empty()))
    return import_checkpoint(file, layers, choices, progress);
  if (!choices.embeddings_tensor.empty()) return import_embeddings(file, choices, progress);
  const auto found = find_stages(file, progress);
  const bool has_stages = !choices.stages.empty() || std::ranges::any_of(found, [](const StageLayer& layer) {
    return !usual_stages(layer).empty();
  });
  if (!has_stages) return import_embeddings(file, choices, progress);
  Imported result = import_stages(file, found, choices, progress);
  attention::require_within_limits(result.model, file.place());
  return result;
}

std::vector<std::string> layers_in(const TensorFile& file, const Choices& choices,
                                   const core::Token& progress) {
  std::vector<std::string> names;
  if (choices.mapping) return names;
  const auto layers = checkpoints::find_layers(file.tensors());
  if (!layers.empty() && choices.stages.empty()) {
    for (const auto& layer : layers) names.push_back(layer.prefix);
    return names;
  }
  if (!choices.embeddings_tensor.empty()) return names;
  const auto found = choices.stages.empty() ? find_stages(file, progress) : std::vector<StageLayer>();
  if (found.size() > 1) {
    for (const StageLayer& layer : found) names.push_back(layer.name);
    return names;
  }
  const auto stages = found.empty() ? choices.stages : usual_stages(found.front());
  const std::size_t n = layers_within(file, stages, choices.first_axis_is_batch);
  for (std::size_t k = 0; k < n; ++k) names.push_back("");
  return names;
}

Imported import_file(const std::filesystem::path& path, const Choices& choices, const core::Token& progress) {
  if (is_session(path)) {
    if (choices.says_something())
      throw Error(path.string() + ": it is a session, of which nothing is to be chosen");
    formats::Session session = formats::load_session(path);
    return {std::move(session.model), {}, std::move(session.view)};
  }
  const TensorFile file = formats::open_tensors(path, progress);
  Imported result = import_tensors(file, choices, progress);
  result.notes.insert(result.notes.begin(), file.notes().begin(), file.notes().end());
  return result;
}

}  // namespace core::importing
