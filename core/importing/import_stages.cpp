#include <algorithm>

#include "core/attention/given_model.hpp"
#include "core/attention/stages.hpp"
#include "core/error.hpp"
#include "core/importing/embeddings.hpp"
#include "core/importing/stages_in.hpp"
#include "core/text/number.hpp"

namespace core::importing {
namespace {

using attention::GivenStage;
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

std::size_t heads_of(const TensorFile& file, const std::vector<StageSource>& stages, bool has_layers,
                     const Choices& choices) {
  for (const StageSource& source : stages) {
    const auto& shape = info_of(file, source).shape;
    if (source.tensors.size() > 1) return source.tensors.size();
    if (shape.size() - has_layers > 2) return shape[shape.size() - 3];
  }
  return choices.n_heads.value_or(1);
}

formats::TensorStage read_source(const TensorFile& file, const StageSource& source,
                                 std::optional<std::size_t> layer, std::size_t n_heads,
                                 const core::Token& progress) {
  const std::size_t bands = source.tensors.size() > 1 ? 1 : n_heads;
  formats::TensorStage read{{source.stage, {}}, 1};
  for (const std::string& name : source.tensors) {
    const TensorInfo& info = info_of(file, {source.stage, {name}});
    formats::TensorStage part = formats::read_stage(file, info, source.stage, layer, bands, progress);
    read.n_sequences = part.n_sequences;
    for (auto& matrix : part.given.matrices) read.given.matrices.push_back(std::move(matrix));
  }
  return read;
}

attention::Model model_of(const TensorFile& file, std::vector<GivenStage> given, std::size_t n_sequences) {
  try {
    return attention::model_of(std::move(given), n_sequences);
  } catch (const Error& error) {
    throw Error(file.place() + error.what());
  }
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
  const std::size_t n_layers = by_name ? 0 : layers_within(file, stages, choices.first_axis_is_batch);
  std::optional<std::size_t> layer;
  if (!by_name) index = chosen_layer(file, choices.layer, std::max<std::size_t>(1, n_layers), {});
  if (n_layers > 0) layer = index;

  const std::size_t n_heads = heads_of(file, stages, layer.has_value(), choices);
  std::vector<GivenStage> given;
  std::size_t n_sequences = 1;
  for (const StageSource& source : stages) {
    formats::TensorStage read = read_source(file, source, layer, n_heads, progress);
    if (!given.empty() && read.n_sequences != n_sequences)
      throw Error(file.place() + source.tensors.front() + ": expected " + std::to_string(n_sequences) +
                  " sequences, as the other stages have, got " + std::to_string(read.n_sequences));
    n_sequences = read.n_sequences;
    given.push_back(std::move(read.given));
  }
  Imported result{model_of(file, std::move(given), n_sequences), {}, {}};
  for (attention::Sequence& sequence : result.model.sequences)
    sequence.tokens = tokens_in(file, sequence.tokens.size(), progress);
  const std::string words = by_name ? "layer " + std::to_string(index) + " of " + std::to_string(found.size())
                            : layer ? "layer " + std::to_string(index) + " of " + std::to_string(n_layers)
                                    : "";
  result.notes.push_back(opened_note(file, stages, words));
  return result;
}

}  // namespace core::importing
