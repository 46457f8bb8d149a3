#include "core/attention/model.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/attention/formulas.hpp"

namespace core::attention {
namespace {

using std::to_string;

/// The first matrix of the first of these stages that is given, or nullptr.
const SharedMatrix* first_given(const Given& given, std::initializer_list<Stage> stages) {
  for (const Stage stage : stages)
    if (const GivenStage* found = given.find(stage); found && !found->matrices.empty())
      return &found->matrices.front();
  return nullptr;
}

}  // namespace

std::size_t Model::n_keys() const {
  if (const SharedMatrix* m = first_given(given, {Stage::keys, Stage::values})) return m->n_rows();
  const SharedMatrix* m = first_given(given, {Stage::scores, Stage::scaled_scores, Stage::masked_scores,
                                           Stage::weights, Stage::dropout_mask});
  return m ? m->n_cols() : n_tokens();
}

std::size_t Model::d_out() const {
  if (projections) return projections->query.weight.n_cols();
  if (has_embeddings()) return d_model();
  const SharedMatrix* m = first_given(given, {Stage::values});
  return m ? n_heads * m->n_cols() : 0;
}

std::size_t Model::d_head() const {
  if (const SharedMatrix* m = first_given(given, {Stage::queries, Stage::keys})) return m->n_cols();
  return projections || has_embeddings() ? d_out() / n_heads : 0;
}

std::size_t Model::d_value() const {
  const SharedMatrix* m = first_given(given, {Stage::values});
  return m ? m->n_cols() : d_out() / n_heads;
}

bool Model::is_off(std::size_t head) const {
  return std::ranges::binary_search(heads_off, head);
}

std::vector<std::string> numbered_tokens(std::size_t n_tokens) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < n_tokens; ++i) names.push_back(to_string(i));
  return names;
}

double scale_factor(const Model& model) {
  switch (model.scale.rule) {
    case ScaleRule::inverse_sqrt_d_head:
      return 1 / std::sqrt(static_cast<double>(model.d_head()));
    case ScaleRule::inverse_sqrt_d_model:
      return 1 / std::sqrt(static_cast<double>(model.d_model()));
    case ScaleRule::factor:
      return model.scale.factor;
    case ScaleRule::none:
      break;
  }
  return 1;
}

double survivor_factor(const Dropout& dropout) {
  if (!dropout.active() || !dropout.rescale) return 1;
  return dropout.rate < 1 ? 1 / (1 - dropout.rate) : 0;
}

std::size_t column_of_head(const Model& model, std::size_t head, std::size_t k) {
  const std::size_t band = model.d_out() / model.n_heads;
  return model.departures.split == HeadColumns::bands ? head * band + k : k * model.n_heads + head;
}

bool follows_causality(const Model& model, std::size_t query, std::size_t key) {
  const auto ahead = static_cast<std::int64_t>(key + model.n_tokens()) - static_cast<std::int64_t>(query + model.n_keys());
  return !model.mask.causal || (model.departures.mask_transposed ? -ahead : ahead) <= model.departures.mask_diagonal;
}

arma::mat visible_cells(const Model& model) {
  const std::size_t n_queries = model.n_tokens(), n_keys = model.n_keys();
  const int diagonal = model.departures.mask_diagonal;
  arma::mat visible(n_queries, n_keys, arma::fill::ones);
  if (model.mask.causal && model.departures.mask_transposed)
    visible = causal_mask(n_keys, n_queries, diagonal).t();
  else if (model.mask.causal)
    visible = causal_mask(n_queries, n_keys, diagonal);
  for (const MaskCell& cell : model.mask.cells) visible(cell.row, cell.column) = cell.visible;
  return visible;
}

}  // namespace core::attention
