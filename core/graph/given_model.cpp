#include "core/graph/given_model.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/graph/stages.hpp"
#include "core/graph/validation.hpp"

namespace core::attention {
namespace {

/// Makes the names of keys match their number, and removes mask entries beyond them.
void fit_keys(Model& model) {
  const std::size_t n_keys = model.n_keys();
  for (Sequence& s : model.sequences)
    if (s.keys().size() != n_keys)
      s.key_tokens = n_keys == s.tokens.size() ? std::vector<std::string>() : numbered_tokens(n_keys);
  trim_mask(model);
}

}  // namespace

std::size_t n_queries_of(const std::vector<GivenStage>& stages) {
  // Keys and values, whose rows are keys, come last.
  const auto first =
      std::ranges::min_element(stages, {}, [](const GivenStage& s) { return info(s.stage).rows; });
  return first->matrices.front().n_rows();
}

void set_given_stage(Model& model, GivenStage stage) {
  auto& stages = model.given.stages;
  std::erase_if(stages, [&](const GivenStage& s) { return s.stage == stage.stage; });
  std::erase_if(model.given.cells, [&](const GivenCell& c) { return c.place.stage == stage.stage; });
  const auto place = std::ranges::lower_bound(stages, stage.stage, {}, &GivenStage::stage);
  stages.insert(place, std::move(stage));
  fit_keys(model);
  remove_invalid_overrides(model);
}

void clear_given_stage(Model& model, Stage stage) {
  std::erase_if(model.given.stages, [&](const GivenStage& s) { return s.stage == stage; });
  fit_keys(model);
  remove_invalid_overrides(model);
}

void remove_invalid_overrides(Model& model) {
  if (model.given.cells.empty() || model.sequences.empty() || model.n_heads == 0) return;
  const StageSet shown = existing_stages(model);
  std::erase_if(model.given.cells, [&](const GivenCell& cell) {
    const GivenCellAddress& place = cell.place;
    if (!contains(shown, place.stage) || place.sequence >= model.sequences.size()) return true;
    const StageShape size = shape_of(model, place.stage);
    const std::size_t n_heads = n_matrices(model, place.stage);
    return place.head >= n_heads || place.row >= size.n_rows || place.column >= size.n_cols;
  });
}

Model model_of(std::vector<GivenStage> stages, std::size_t n_sequences) {
  if (stages.empty() || std::ranges::any_of(stages, [](const GivenStage& s) { return s.matrices.empty(); }))
    throw Error("given: expected at least one stage of at least one matrix");
  Model model;
  const std::size_t n_queries = n_queries_of(stages);
  model.sequences.assign(n_sequences, {numbered_tokens(n_queries), arma::mat(n_queries, 0)});
  model.n_heads = stages.front().matrices.size() / n_sequences;
  model.mask.causal = false;
  for (GivenStage& stage : stages) set_given_stage(model, std::move(stage));
  if (model.d_head() == 0) model.scale.rule = ScaleRule::none;
  require(model);
  return model;
}

}  // namespace core::attention
