#include "core/attention/model.hpp"

#include <algorithm>
#include <utility>

#include "core/attention/rules.hpp"
#include "core/error.hpp"

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

const MaskCell* Mask::find(std::size_t row, std::size_t column) const {
  const auto found = std::ranges::lower_bound(cells, std::pair(row, column), {}, &MaskCell::place);
  return found == cells.end() || found->place() != std::pair(row, column) ? nullptr : &*found;
}

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

void require(const Model& model, const std::string& place) {
  if (const auto problem = check(model)) throw Error(place + problem->path + ": " + problem->message);
}

void require(const Model& model, std::size_t sequence) {
  require(model);
  if (sequence >= model.sequences.size())
    throw Error("sequence " + to_string(sequence) + ": there is no such sequence");
}

std::vector<std::string> numbered_tokens(std::size_t n_tokens) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < n_tokens; ++i) names.push_back(to_string(i));
  return names;
}

double scale_factor(const Model& model) {
  return rules_of(model).scale->factor(model);
}

double survivor_factor(const Dropout& dropout) {
  return dropout.active() ? surviving(dropout)->compute(dropout) : 1;
}

std::size_t column_of_head(const Model& model, std::size_t head, std::size_t k) {
  return rules_of(model).split->layout.joined({head, 0, k}, split_sizes(model)).column;
}

bool follows_causality(const Model& model, std::size_t query, std::size_t key) {
  const auto place =
      static_cast<std::int64_t>(query + model.n_keys()) - static_cast<std::int64_t>(model.n_tokens());
  return rules_of(model).see->compute(place, static_cast<std::int64_t>(key), model);
}

arma::mat visible_cells(const Model& model) {
  const auto n_queries = static_cast<std::int64_t>(model.n_tokens()),
             n_keys = static_cast<std::int64_t>(model.n_keys());
  const auto sees = rules_of(model).see->compute;
  arma::mat visible(model.n_tokens(), model.n_keys());
  double* next = visible.memptr();  // column by column
  for (std::int64_t key = 0; key < n_keys; ++key)
    for (std::int64_t query = n_keys - n_queries; query < n_keys; ++query) *next++ = sees(query, key, model);
  for (const MaskCell& cell : model.mask.cells) visible(cell.row, cell.column) = cell.visible;
  return visible;
}

}  // namespace core::attention
