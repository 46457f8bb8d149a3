#include "core/graph/model.hpp"

#include <cmath>

#include <algorithm>

#include "core/graph/bugs.hpp"
#include "core/graph/graph.hpp"
#include "core/graph/stages.hpp"

namespace core::attention {
namespace {

using std::to_string;

/// Returns the first matrix of the first of these stages that is given, or nullptr.
const SharedMatrix* first_given(const Given& given, std::initializer_list<Stage> stages) {
  for (const Stage stage : stages)
    if (const GivenStage* found = given.find(stage); found && !found->matrices.empty())
      return &found->matrices.front();
  return nullptr;
}

}  // namespace

const MaskCell* Mask::find(std::size_t row, std::size_t column) const {
  const auto found = std::ranges::lower_bound(cells, std::pair(row, column), {}, &MaskCell::place);
  return found == cells.end() || found->place() != std::pair(row, column) ? nullptr : &*found;
}

std::size_t Model::n_keys() const {
  if (has_key_embeddings()) return sequences.front().key_embeddings.n_rows();
  if (const SharedMatrix* m = first_given(given, {Stage::keys, Stage::values})) return m->n_rows();
  const SharedMatrix* m = first_given(given, {Stage::scores, Stage::scaled_scores, Stage::masked_scores,
                                              Stage::weights, Stage::dropout_mask});
  return m ? m->n_cols() : n_tokens();
}

std::size_t Model::kv_head_of(std::size_t head) const {
  const std::size_t groups = kv_heads();
  if (has_bug("groups_tiled")) return head % groups;
  return groups == n_heads ? head : head / (n_heads / groups);
}

std::size_t Model::d_out() const {
  if (projections) return projections->query.weight.n_cols();
  if (has_embeddings()) return d_model();
  const SharedMatrix* m = first_given(given, {Stage::values});
  return m ? n_heads * m->n_cols() : 0;
}

std::size_t Model::d_output() const {
  const bool is_projected = projections && projections->output && !has_bug("output_projection_missing");
  return is_projected ? projections->output->weight.n_cols() : n_heads * d_value();
}

std::size_t Model::d_head() const {
  if (const SharedMatrix* m = first_given(given, {Stage::queries, Stage::keys})) return m->n_cols();
  return projections || has_embeddings() ? d_out() / n_heads : 0;
}

std::size_t Model::d_value() const {
  const SharedMatrix* m = first_given(given, {Stage::values});
  return m ? m->n_cols() : d_out() / n_heads;
}

bool Mask::has_other_rules() const {
  return align != MaskAlignment::last || window != MaskWindow() || prefix > 0 || !documents.empty() ||
         !hidden_keys.empty();
}

bool Mask::is_only_causal() const {
  return causal && edge == MaskEdge() && cells.empty() && !has_other_rules();
}

Mask Mask::with_nothing_masked() const {
  Mask mask;
  mask.causal = false, mask.method = method, mask.empty_rows = empty_rows;
  mask.edge = edge, mask.large_negative = large_negative;
  return mask;
}

bool Mask::masks_keys() const {
  return !cells.empty() || masks_keys_by_rule();
}

bool Mask::masks_keys_by_rule() const {
  return causal || window != MaskWindow() || !documents.empty() || !hidden_keys.empty();
}

bool Model::has_bug(std::string_view bug) const {
  return std::ranges::any_of(bugs, [&](const bugs::BugCase& made) { return made.bug->name == bug; });
}

bool Model::is_ablated(std::size_t head) const {
  return std::ranges::binary_search(heads_off, head);
}

void trim_mask(Model& model) {
  Mask& mask = model.mask;
  const std::size_t n_queries = model.n_tokens(), n_keys = model.n_keys();
  std::erase_if(mask.cells, [&](const MaskCell& c) { return c.row >= n_queries || c.column >= n_keys; });
  mask.prefix = std::min(mask.prefix, n_keys);
  if (n_queries != n_keys || mask.documents.size() != n_keys) mask.documents.clear();
  for (auto& keys : mask.hidden_keys) std::erase_if(keys, [&](std::size_t key) { return key >= n_keys; });
  const bool hides_any =
      std::ranges::any_of(mask.hidden_keys, [](const auto& keys) { return !keys.empty(); });
  mask.hidden_keys.resize(hides_any ? model.sequences.size() : 0);
}

std::vector<std::string> numbered_tokens(std::size_t n_tokens) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < n_tokens; ++i) names.push_back(to_string(i));
  return names;
}

std::int64_t position_of_query(const Model& model, std::size_t query) {
  const auto more_keys =
      static_cast<std::int64_t>(model.n_keys()) - static_cast<std::int64_t>(model.n_tokens());
  return position_of_key(model, query) + more_keys;
}

std::int64_t position_of_key(const Model& model, std::size_t key) {
  const auto& rotary = model.additions.positions.rotary;
  return static_cast<std::int64_t>(key) + (rotary ? rotary->first : 0);
}

std::optional<positions::Rotary> rotary_of(const Model& model) {
  const auto& rotary = model.additions.positions.rotary;
  if (!rotary) return std::nullopt;
  const auto length = position_of_key(model, 0) + static_cast<std::int64_t>(model.n_keys());
  return positions::at_length(*rotary, model.d_head(), length);
}

std::size_t n_matrices(const Model& model, Stage stage) {
  const StageInfo& row = info(stage);
  return !row.per_head ? 1 : row.rows == RowTokens::keys ? model.kv_heads() : model.n_heads;
}

std::size_t matrix_of_head(const Model& model, Stage stage, std::size_t head) {
  const StageInfo& row = info(stage);
  return !row.per_head ? 0 : row.rows == RowTokens::keys ? model.kv_head_of(head) : head;
}

std::size_t head_of_matrix(const Model& model, Stage stage, std::size_t nth) {
  std::size_t head = 0;
  while (matrix_of_head(model, stage, head) != nth) ++head;
  return head;
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

double dropout_scale(const Dropout& dropout) {
  if (!dropout.active() || !dropout.rescale) return 1;
  return dropout.rate < 1 ? 1 / (1 - dropout.rate) : 0;
}

std::size_t column_of_head(const Model& model, Stage stage, std::size_t head, std::size_t k) {
  const graph::HeadSizes sizes = graph::split_sizes(model, stage);
  const bool is_contiguous = !model.has_bug("heads_interleaved");
  return (is_contiguous ? graph::contiguous : graph::interleaved).combine({head, 0, k}, sizes).column;
}

}  // namespace core::attention
