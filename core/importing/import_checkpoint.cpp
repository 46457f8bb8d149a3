// A layer of a checkpoint, with what its kind of models does, as a model.
#include <algorithm>
#include <iterator>

#include "core/base/text.hpp"
#include "core/files/projections.hpp"
#include "core/graph/limits.hpp"
#include "core/importing/embeddings.hpp"
#include "core/importing/import_parts.hpp"

namespace core::importing {
namespace {

using formats::TensorFile;
namespace checkpoints = formats::checkpoints;
using checkpoints::Behaviour;
using checkpoints::Layer;

constexpr checkpoints::Layout layout_by_hand{"by_hand", "projections named by hand", "", true};

/// A layer whose projections were named by hand; what else its names tell is told of the layer they are of.
Layer layer_by_hand(const std::vector<Layer>& layers, const checkpoints::Mapping& mapping) {
  const std::string weight = mapping.query.weights.empty() ? "" : mapping.query.weights.front();
  Layer layer{"", &layout_by_hand, mapping, 0};
  for (const Layer& known : layers)
    if (weight.starts_with(known.prefix)) layer.prefix = known.prefix, layer.layout = known.layout;
  for (auto* source : {&layer.mapping.query, &layer.mapping.key, &layer.mapping.value})
    source->n_parts = 1;  // a part that is named by hand is a third
  return layer;
}

void add_names(std::vector<std::string>& names, const checkpoints::Source& source) {
  for (const auto& each : {source.weights, source.biases})
    for (const std::string& name : each)
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
}

std::vector<std::string> tensors_of(const checkpoints::Mapping& mapping, bool has_output) {
  std::vector<std::string> names;
  for (const auto* source : {&mapping.query, &mapping.key, &mapping.value}) add_names(names, *source);
  if (has_output && mapping.output) add_names(names, *mapping.output);
  return names;
}

void leave_out(Account& account, const checkpoints::Absence& absence) {
  account.left_out.push_back({absence.name, absence.words});
}

void require_what_may_be_left_out(const Account& account, const Choices& choices, const TensorFile& file,
                                  const Layer& layer) {
  if (choices.ignored)
    require_ignored(account, *choices.ignored,
                    file.place() + layer.prefix + (layer.prefix.empty() ? "" : ": "));
}

/// "h.0.attn.: c_attn.weight [12, 36], c_attn.bias [36]".
std::string weights_words(const TensorFile& file, const Layer& layer, const std::vector<std::string>& names) {
  const auto words = [&](const std::string& name) {
    return tensor_words(file.info(name)).substr(name.starts_with(layer.prefix) ? layer.prefix.size() : 0);
  };
  return (layer.prefix.empty() ? "" : layer.prefix + ": ") + text::joined(names, ", ", words);
}

std::string heads_words(std::size_t n, const Choices& choices, const Behaviour& behaviour,
                        const Layer& layer) {
  const std::string words = std::to_string(n) + (n == 1 ? " head" : " heads");
  const auto& configured = behaviour.heads.n;
  if (choices.n_heads)
    return words + ", as said" +
           (configured && configured != n ? " (config.json says " + std::to_string(*configured) + ")" : "");
  return words + (layer.n_heads > 0 ? ", as its names say" : ", as config.json says");
}

}  // namespace

ExpectedLayer expected_of_layer(const TensorFile& file, const Layer& layer,
                                const checkpoints::Config& config) {
  const Behaviour behaviour = checkpoints::behaviour_of(file.tensors(), layer, config, file.place());
  ExpectedLayer expected{{}, behaviour.heads.n};
  if (layer.n_heads > 0) expected.n_heads = layer.n_heads;
  Account& account = expected.account;
  for (const checkpoints::Absence* absence : behaviour.not_computed) leave_out(account, *absence);
  account.used = behaviour.known;
  account.assumed = behaviour.assumed;
  return expected;
}

Imported import_checkpoint(const TensorFile& file, const std::vector<Layer>& layers, const Choices& choices,
                           const core::Token& progress) {
  const checkpoints::Config config = checkpoints::config_beside(file.path());
  const Layer layer =
      choices.mapping
          ? layer_by_hand(layers, *choices.mapping)
          : checkpoints::choose_layer(layers, choices.layer.empty() ? "0" : choices.layer, file.place());
  Behaviour behaviour = checkpoints::behaviour_of(file.tensors(), layer, config, file.place(),
                                                  choices.ignored.value_or(std::vector<std::string>()));
  if (choices.mapping) behaviour.mapping = *choices.mapping;
  Imported result;
  Account& account = result.account;
  for (const checkpoints::Absence* absence : behaviour.not_computed) leave_out(account, *absence);
  require_what_may_be_left_out(account, choices, file, layer);

  const auto heads = checkpoints::heads_of(file, layer, behaviour, choices.n_heads);
  checkpoints::Attention read = checkpoints::read_attention(file, behaviour.mapping, heads, progress);
  result.notes = std::move(read.notes);
  attention::Model& model = result.model;
  model.n_heads = read.n_heads;
  model.n_kv_heads = read.n_kv_heads;
  const std::size_t d_in = read.projections.query.weight->n_rows;
  const std::size_t d_out = read.projections.query.weight->n_cols, d_head = d_out / read.n_heads;
  // Before embeddings are drawn for it.
  attention::require_size({.d_model = d_in, .d_out = d_out, .n_heads = read.n_heads, .projections = true},
                          file.place());
  model.scale = checkpoints::scale_of(behaviour, config, layer, d_head);
  model.additions = checkpoints::read_additions(file, behaviour.planned, model.n_heads, d_head, progress);
  model.projections = std::move(read.projections);
  model.mask.causal = behaviour.causal;
  model.mask.window = behaviour.window;

  std::vector<std::string> used = tensors_of(behaviour.mapping, model.projections->output.has_value());
  std::ranges::copy(checkpoints::tensors_of(behaviour.planned), std::back_inserter(used));
  account.used.push_back(weights_words(file, layer, used));
  account.used.push_back(heads_words(model.n_heads, choices, behaviour, layer));
  if (model.n_kv_heads)
    account.used.push_back(std::to_string(*model.n_kv_heads) + " of keys and values, which the others share");
  account.used.insert(account.used.end(), behaviour.known.begin(), behaviour.known.end());
  account.assumed = behaviour.assumed;
  model.sequences = embeddings_for(file, choices, d_in, behaviour.norm_before, result, progress);
  const bool is_configured = !config.model_type.empty() || !config.parts.empty();
  (is_configured ? account.used : account.assumed).push_back(scale_words(model));
  if (!choices.embeddings_tensor.empty() && choices.embeddings.empty())
    used.push_back(choices.embeddings_tensor);
  note_unused(account, file, used, layer.prefix);
  attention::require_within_limits(model, file.place());
  return result;
}

}  // namespace core::importing
