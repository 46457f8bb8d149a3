#include <algorithm>
#include <vector>

#include "core/editing/edit_cases.hpp"

namespace core::editing::cases {
namespace {

using attention::Additions;
using attention::Linear;
using attention::SharedMatrix;

/// Columns of keys or values for other groups: of each the mean of what its heads asked before.
SharedMatrix regrouped(const arma::mat& columns, const Model& before, const Model& after) {
  const std::size_t d_head = before.d_out() / before.n_heads;
  arma::mat result(columns.n_rows, after.n_groups() * d_head, arma::fill::zeros);
  const double heads_of_group = static_cast<double>(before.n_heads / after.n_groups());
  for (std::size_t h = 0; h < before.n_heads; ++h)
    for (std::size_t k = 0; k < d_head; ++k)
      result.col(after.group_of(h) * d_head + k) +=
          columns.col(before.group_of(h) * d_head + k) / heads_of_group;
  return result;
}

void fit_norm(Model& model) {
  auto& norm = model.additions.normalise;
  if (!norm) return;
  for (SharedMatrix* factors : {&norm->query, &norm->key}) resize(*factors, 1, model.d_head(), 1);
}

void fit_positions(Model& model) {
  auto& [rotary, alibi, relative] = model.additions.positions;
  if (rotary) {
    if (rotary->dimensions && *rotary->dimensions > model.d_head()) rotary->dimensions.reset();
    if (rotary->inverse_frequencies)
      resize(*rotary->inverse_frequencies, 1, rotated_columns(*rotary, model.d_head()) / 2);
  }
  if (alibi && alibi->slopes) resize(*alibi->slopes, 1, model.n_heads);
  if (relative) resize(relative->table, model.n_heads, relative->table.n_cols());
}

}  // namespace

void resize(SharedMatrix& matrix, std::size_t n_rows, std::size_t n_columns, double fill) {
  const arma::mat& old = matrix;
  if (old.n_rows == n_rows && old.n_cols == n_columns) return;
  arma::mat fitted(n_rows, n_columns, arma::fill::value(fill));
  const std::size_t rows = std::min<std::size_t>(n_rows, old.n_rows),
                    columns = std::min<std::size_t>(n_columns, old.n_cols);
  for (std::size_t j = 0; j < columns; ++j)
    for (std::size_t i = 0; i < rows; ++i) fitted(i, j) = old(i, j);
  matrix = std::move(fitted);
}

void fit_additions(Model& model) {
  Additions& a = model.additions;
  if (a == Additions()) return;
  fit_norm(model);
  fit_positions(model);
  if (a.sink) resize(*a.sink, 1, model.n_heads);
  if (a.score_bias.size() > 1) a.score_bias.resize(model.n_heads);
  for (SharedMatrix& bias : a.score_bias) resize(bias, model.n_tokens(), model.n_keys());
}

void change(Model& model, const SetGroupCount& edit) {
  if (!model.projections) refuse("n_kv_heads", "the model has no projections");
  if (edit.n_kv_heads == 0 || model.n_heads % edit.n_kv_heads != 0)
    refuse("n_kv_heads", "expected a number that divides n_heads = " + std::to_string(model.n_heads) +
                             ", got " + std::to_string(edit.n_kv_heads));
  if (edit.n_kv_heads == model.n_groups()) return;
  const Model before = model;
  model.n_kv_heads.reset();
  if (edit.n_kv_heads != model.n_heads) model.n_kv_heads = edit.n_kv_heads;
  for (Linear* linear : {&model.projections->key, &model.projections->value}) {
    linear->weight = regrouped(linear->weight, before, model);
    if (linear->bias) linear->bias = regrouped(*linear->bias, before, model);
  }
  std::erase_if(model.given.stages, [&](const attention::GivenStage& stage) {
    return stage.stage == attention::Stage::keys || stage.stage == attention::Stage::values;
  });
}

void change(Model& model, const SetKeyEmbeddings& edit) {
  const bool none = edit.embeddings.empty();
  if (!none && edit.embeddings.size() != model.sequences.size())
    refuse("key_embeddings", "expected " + std::to_string(model.sequences.size()) +
                                 " matrices, one for each sequence, got " +
                                 std::to_string(edit.embeddings.size()));
  for (std::size_t s = 0; s < model.sequences.size(); ++s) {
    attention::Sequence& sequence = model.sequences[s];
    sequence.key_embeddings = none ? SharedMatrix() : edit.embeddings[s];
    sequence.key_tokens.clear();
    if (none) continue;
    const std::size_t n_keys = sequence.key_embeddings.n_rows();
    sequence.key_tokens = edit.tokens.size() == n_keys ? edit.tokens : attention::numbered_tokens(n_keys);
  }
  if (model.projections)
    for (Linear* linear : {&model.projections->key, &model.projections->value})
      resize(linear->weight, model.d_memory(), linear->weight.n_cols());
  for (SharedMatrix& mask : model.dropout.given) resize(mask, model.n_tokens(), model.n_keys(), 1);
  fit_mask(model);
  fit_additions(model);
  drop_cells_that_follow_the_rule(model);
}

}  // namespace core::editing::cases
