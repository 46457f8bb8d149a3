#include <algorithm>

#include "core/base/error.hpp"
#include "core/base/find.hpp"
#include "core/base/number.hpp"
#include "core/graph/given_model.hpp"
#include "core/graph/stages.hpp"
#include "core/importing/companions.hpp"
#include "core/importing/embeddings.hpp"
#include "core/importing/scores.hpp"
#include "core/importing/stage_reading.hpp"

namespace core::importing {
namespace {

using attention::GivenStage;
using attention::Stage;
using formats::TensorFile;
using formats::TensorInfo;

const TensorInfo& info_of(const TensorFile& file, const StageSource& source) {
  return file.info(source.tensors.empty() ? "" : source.tensors.front());
}

/// A number from 0, or the beginning of a layer's name.
std::size_t chosen_layer(const TensorFile& file, const std::string& chosen, std::size_t n_layers,
                         const std::vector<StageLayer>& named) {
  if (chosen.empty()) return 0;
  if (const auto number = text::parse_whole_number(chosen); number && *number < n_layers) return *number;
  for (std::size_t k = 0; k < named.size(); ++k)
    if (n_layers == named.size() && named[k].name.starts_with(chosen)) return k;
  throw Error(file.place() +
              (n_layers == 1 ? "expected layer 0, the only one"
                             : "expected a layer of 0 … " + std::to_string(n_layers - 1)) +
              ", got \"" + chosen + "\"");
}

/// Says which stage the scores are, with queries and keys beside them as witnesses; gives those that were
/// looked at.
std::vector<std::string> settle_scores(const TensorFile& file, const std::vector<StageSource>& beside,
                                       std::size_t n_layers, bool is_batch, StageReading& reading,
                                       bool has_scale, std::vector<GivenStage>& given,
                                       std::optional<double>& factor, Account& account) {
  std::vector<std::string> looked_at;
  const auto scores = std::ranges::find(given, Stage::scores, &GivenStage::stage);
  if (scores == given.end()) return looked_at;
  std::optional<formats::TensorStage> queries, keys;
  const auto* q = find_by(beside, Stage::queries, &StageSource::stage);
  const auto* k = find_by(beside, Stage::keys, &StageSource::stage);
  if (q && k) {
    try {
      if (layers_within(file, {*q, *k}, is_batch) != n_layers) throw Error("of other layers");
      queries = reading.read(*q), keys = reading.read(*k);
      for (const StageSource* source : {q, k})
        for (const std::string& name : source->tensors) {
          looked_at.push_back(name);
          account.used.push_back(tensor_words(file.info(name)) + " to tell what the scores are");
        }
    } catch (const core::Stopped&) {
      throw;
    } catch (const Error&) {
      queries.reset(), keys.reset();  // of another shape they are no witnesses
    }
  }
  const ScoresAre are =
      judge_scores(*scores, queries ? &queries->given : nullptr, keys ? &keys->given : nullptr, has_scale);
  scores->stage = are.stage;
  factor = are.factor;
  (are.is_assumed ? account.assumed : account.used).push_back(are.words);
  return looked_at;
}

attention::Model model_of(const TensorFile& file, std::vector<GivenStage> given, std::size_t n_sequences) {
  try {
    return attention::model_of(std::move(given), n_sequences);
  } catch (const Error& error) {
    throw Error(file.place() + error.what());
  }
}

/// Whether a mask beside stages of four axes says that the first of these counts sequences: it has as many
/// rows of keys, or matrices for all heads.
bool masks_count_sequences(const TensorFile& file, const std::vector<StageSource>& stages,
                           const Companions& companions) {
  std::optional<std::size_t> n;
  std::vector<std::size_t> lengths;
  for (const StageSource& source : stages) {
    const formats::Shape& shape = info_of(file, source).shape;
    if (shape.size() != 4 || shape[0] < 2 || (n && n != shape[0])) return false;
    n = shape[0];
    const bool is_of_scores = attention::info(source.stage).columns == attention::Columns::tokens;
    if (is_of_scores)
      lengths = {shape[3]};
    else if (source.stage == Stage::keys)
      lengths = {shape[1], shape[2]};  // heads come before tokens or after them
  }
  const auto is_length = [&](std::size_t keys) { return std::ranges::find(lengths, keys) != lengths.end(); };
  return std::ranges::any_of(companions.masks, [&](const TensorInfo* mask) {
    const formats::Shape& shape = mask->shape;
    if (shape.empty() || shape[0] != n || !is_length(shape.back())) return false;
    const bool is_of_keys = shape.size() == 2 && !is_length(shape[0]);  // not of queries and keys
    return is_of_keys || (shape.size() == 4 && shape[1] == 1);
  });
}

std::string opened_note(const TensorFile& file, const std::vector<StageSource>& stages,
                        const std::string& layer) {
  std::string note;
  for (const StageSource& source : stages)
    note += (note.empty() ? "Given " : ", ") + std::string(attention::info(source.stage).name) + " " +
            formats::shape_text(info_of(file, source).shape);
  return note + (layer.empty() ? "." : ": " + layer + ".");
}

}  // namespace

bool counts_sequences(const TensorFile& file, const std::vector<StageSource>& stages,
                      const std::string& layer, const Choices& choices) {
  return choices.first_axis_is_batch ||
         (choices.layer.empty() && masks_count_sequences(file, stages, companions_in(file, layer)));
}

std::size_t layers_within(const TensorFile& file, const std::vector<StageSource>& stages,
                          bool first_axis_is_batch) {
  std::optional<std::size_t> n_layers;
  for (const StageSource& source : stages) {
    const TensorInfo& info = info_of(file, source);
    const auto& shape = info.shape;
    if (info.dtype == formats::Dtype::text || formats::count_of(shape) == std::uint64_t{0})
      throw Error(file.place() + info.name + ": expected at least one number, got " +
                  formats::shape_text(shape));
    const bool has_layers = shape.size() == 5 || (shape.size() == 4 && shape[0] > 1 && !first_axis_is_batch);
    const std::size_t n = has_layers ? shape[0] : 0;
    if (n_layers && *n_layers != n)
      throw Error(file.place() + info.name + ": expected " + std::to_string(*n_layers) +
                  " layers, as the other stages have, got " + formats::shape_text(shape));
    n_layers = n;
  }
  return n_layers.value_or(0);
}

Account expected_of_stages(const TensorFile& file, const std::vector<StageSource>& stages,
                           const std::string& layer) {
  Account account;
  std::vector<std::string> used;
  for (const StageSource& source : stages)
    used.insert(used.end(), source.tensors.begin(), source.tensors.end());
  const Companions beside = companions_in(file, layer);
  const bool is_masked = find_by(stages, Stage::weights, &StageSource::stage) ||
                         find_by(stages, Stage::masked_scores, &StageSource::stage);
  const bool is_scaled = is_masked || find_by(stages, Stage::scaled_scores, &StageSource::stage);
  std::vector<const TensorInfo*> companions;
  if (!is_masked) companions = beside.masks;
  if (!is_masked && beside.is_causal) companions.push_back(beside.is_causal);
  if (!is_scaled && beside.scale) companions.push_back(beside.scale);
  for (const TensorInfo* info : companions) used.push_back(info->name);
  for (const std::string& name : used)
    if (const TensorInfo* info = file.find(name)) account.used.push_back(tensor_words(*info));
  if (!is_masked && beside.masks.empty() && !beside.is_causal)
    account.assumed.push_back("not causal: every key is seen");
  note_unused(account, file, used, layer);
  return account;
}

Imported import_stages(const TensorFile& file, const std::vector<StageLayer>& found, const Choices& choices,
                       const core::Token& progress) {
  const bool by_name = choices.stages.empty() && found.size() > 1;
  std::vector<StageSource> stages = choices.stages;
  std::size_t index = 0;
  if (stages.empty() && !found.empty()) {
    if (by_name) index = chosen_layer(file, choices.layer, found.size(), found);
    stages = usual_stages(found[index]);
  }
  if (stages.empty())
    throw Error(file.place() + "expected weights, scores, or queries and keys among its tensors");
  const std::string name_of_first = found.empty() ? "" : found[std::min(index, found.size() - 1)].name;
  const bool is_batch = counts_sequences(file, stages, name_of_first, choices);
  const std::size_t n_layers = by_name ? 0 : layers_within(file, stages, is_batch);
  std::optional<std::size_t> layer;
  const bool has_a_named_layer = found.size() == 1 && !found.front().name.empty();
  if (!by_name && n_layers == 0 && !has_a_named_layer && !choices.layer.empty() && choices.given.empty())
    throw Error(file.place() + "expected no layer to be chosen, as there are none in it, got \"" +
                choices.layer + "\"");
  if (!by_name && (n_layers > 0 || has_a_named_layer))
    index = chosen_layer(file, choices.layer, std::max<std::size_t>(1, n_layers), found);
  if (n_layers > 0) layer = index;

  Imported result;
  Account& account = result.account;
  std::vector<std::string> used;
  for (const StageSource& source : stages)
    for (const std::string& name : source.tensors) {
      used.push_back(name);
      account.used.push_back(tensor_words(file.info(name)) + " as " + attention::info(source.stage).name);
    }
  const std::string name = found.empty() ? "" : found[std::min(index, found.size() - 1)].name;
  const Companions companions = companions_in(file, name);
  StageReading reading(file, choices, {layer.value_or(0), n_layers}, progress, account);
  std::vector<GivenStage> given;
  std::size_t n_sequences = 1;
  for (formats::TensorStage& stage : reading.read_all(stages)) {
    n_sequences = stage.n_sequences;
    given.push_back(std::move(stage.given));
  }
  std::optional<double> factor;
  if (choices.stages.empty() && !found.empty())
    for (std::string& seen :
         settle_scores(file, found[std::min(index, found.size() - 1)].stages, n_layers, is_batch, reading,
                       companions.scale != nullptr, given, factor, account))
      used.push_back(std::move(seen));
  result.model = model_of(file, std::move(given), n_sequences);
  const TensorInfo& first = info_of(file, stages.front());
  if (layer && choices.layer.empty() && first.shape.size() == 4)
    account.assumed.push_back("that the first axis of " + tensor_words(first) +
                              " counts layers, not sequences");
  if (is_batch && !choices.first_axis_is_batch)
    account.used.push_back("the first axis as sequences, of which a mask has as many");
  const std::string n_heads =
      std::to_string(result.model.n_heads) + (result.model.n_heads == 1 ? " head" : " heads");
  if (choices.n_heads)
    account.used.push_back(n_heads + ", as said");
  else if (result.model.n_heads == 1 && result.model.given.find(Stage::queries))
    account.assumed.push_back(n_heads);
  if (factor) result.model.scale = {attention::ScaleRule::factor, *factor};
  if (factor && !companions.scale) account.assumed.push_back(scale_words(result.model));
  for (std::string& companion :
       apply_companions(file, companions, {layer.value_or(0), n_layers}, result, progress))
    used.push_back(std::move(companion));
  if (choices.ignored) require_ignored(account, *choices.ignored, file.place());
  if (const std::string wrong = row_sums_note(result.model); !wrong.empty()) result.notes.push_back(wrong);
  note_unused(account, file, used, by_name && !name.empty() ? name : "");
  for (attention::Sequence& sequence : result.model.sequences)
    sequence.tokens = tokens_in(file, sequence.tokens.size(), progress);
  const std::string words = by_name ? "layer " + std::to_string(index) + " of " + std::to_string(found.size())
                            : layer ? "layer " + std::to_string(index) + " of " + std::to_string(n_layers)
                                    : "";
  result.notes.push_back(opened_note(file, stages, words));
  return result;
}

}  // namespace core::importing
