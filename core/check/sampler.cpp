#include "core/check/sampler.hpp"

#include <algorithm>

#include "core/graph/attend.hpp"
#include "core/graph/dropout.hpp"
#include "core/graph/formulas.hpp"
#include "core/graph/order.hpp"
#include "core/graph/rounding.hpp"
#include "core/graph/rules.hpp"
#include "core/graph/stages.hpp"
#include "core/graph/visible.hpp"

namespace core::check {
namespace {

using attention::Rules;
using attention::SharedMatrix;
using attention::Stage;

/// What of the projected embeddings is kept at most, in numbers.
constexpr std::size_t most_kept = std::size_t{1} << 27;

using Rows = std::vector<std::size_t>;

arma::uvec indices(const Rows& rows) {
  return arma::conv_to<arma::uvec>::from(rows);
}

void add_row(Rows& rows, std::size_t row) {
  if (std::find(rows.begin(), rows.end(), row) == rows.end()) rows.push_back(row);
}

/// Where a number of the merged heads stands in them.
attention::HeadCell before_merge(const Model& model, std::size_t row, std::size_t column) {
  return attention::rules_of(model).merge->layout.parted({row, column}, merged_sizes(model));
}

/// The rows that have to be computed for those of the sample, which come first.
Rows needed_rows(const Model& model, const Rows& sampled) {
  Rows rows = sampled;
  if (model.departures.softmax_over == attention::SoftmaxOver::queries) {
    for (std::size_t i = 0; i < model.n_tokens(); ++i) add_row(rows, i);
  } else if (model.merge == attention::MergeRule::reshape_without_transpose) {
    for (const std::size_t row : sampled)
      for (std::size_t column = 0; column < model.d_out(); ++column)
        add_row(rows, before_merge(model, row, column).row);
  }
  return rows;
}

arma::mat merged_rows(const Model& model, const Trace& trace, const Rows& computed, std::size_t n_sampled) {
  if (model.merge != attention::MergeRule::reshape_without_transpose)
    return trace.concatenated->head_rows(n_sampled);
  std::vector<std::size_t> place_of(model.n_tokens());
  for (std::size_t a = 0; a < computed.size(); ++a) place_of[computed[a]] = a;
  arma::mat merged(n_sampled, model.d_out());
  for (std::size_t a = 0; a < n_sampled; ++a)
    for (std::size_t column = 0; column < merged.n_cols; ++column) {
      const attention::HeadCell from = before_merge(model, computed[a], column);
      const arma::mat& contexts = trace.heads[from.head].contexts;
      merged(a, column) = model.is_off(from.head) ? 0 : contexts(place_of[from.row], from.column);
    }
  return merged;
}

/// Of matrices of groups those of each head.
std::vector<SharedMatrix> of_every_head(const Model& model, const std::vector<SharedMatrix>& groups) {
  std::vector<SharedMatrix> heads;
  for (std::size_t h = 0; h < model.n_heads; ++h) heads.push_back(groups[model.group_of(h)]);
  return heads;
}

std::vector<SharedMatrix> rows_of(const std::vector<SharedMatrix>& heads, const arma::uvec& rows) {
  std::vector<SharedMatrix> result;
  for (const arma::mat& head : heads) result.emplace_back(arma::mat(head.rows(rows)));
  return result;
}

/// The mask of those rows, cell by cell.
attention::Mask mask_of_rows(const Model& model, std::size_t sequence, const Rows& rows) {
  attention::Mask mask = model.mask.hiding_nothing();
  const arma::mat visible = attention::visible_cells(model, sequence);
  for (std::size_t a = 0; a < rows.size(); ++a)
    for (std::size_t j = 0; j < visible.n_cols; ++j)
      if (visible(rows[a], j) == 0) mask.cells.push_back({a, j, false});
  return mask;
}

}  // namespace

Sampler::Heads Sampler::projected(const Model& model, Stage stage) const {
  const Rules rules = attention::rules_of(model);
  const bool of_queries = stage == Stage::queries, of_keys = stage == Stage::keys;
  const attention::Projecting* project = of_queries ? rules.project.query
                                         : of_keys  ? rules.project.key
                                                    : rules.project.value;
  Projected made{model.sequences[sample_.sequence].embeddings,
                 {},
                 project,
                 &splitting(model, stage),
                 model.departures,
                 n_matrices(model, stage),
                 {}};
  if (model.projections)
    made.linear = of_queries ? model.projections->query
                  : of_keys  ? model.projections->key
                             : model.projections->value;
  for (const Projected& known : projected_)
    if (known.made_like(made)) return known.heads;
  const arma::mat all = project->compute(made.embeddings, model);
  for (std::size_t h = 0; h < made.n_heads; ++h)
    made.heads.emplace_back(made.split->compute(all, h, made.n_heads));
  if ((projected_.size() + 1) * all.n_elem <= most_kept) projected_.push_back(made);
  return made.heads;
}

bool Sampler::Projected::made_like(const Projected& other) const {
  const attention::Departures &a = departures, &b = other.departures;
  return split == other.split && n_heads == other.n_heads && a.precision == b.precision &&
         a.product_inputs == b.product_inputs && a.sums_rounded == b.sums_rounded && linear == other.linear &&
         embeddings == other.embeddings;
}

const std::vector<arma::mat>& Sampler::kept_by_dropout(const Model& model) const {
  Model unscaled = model;  // zeros and ones
  unscaled.dropout.rescale = false;
  if (!kept_ || !(kept_->first == unscaled.dropout))
    kept_.emplace(unscaled.dropout, attention::drawn_dropout_masks(unscaled, sample_.sequence));
  return kept_->second;
}

/// A stage of every head, or every group, on the way from queries or keys to the scores.
Sampler::Heads Sampler::prepared(const Model& model, const attention::Chain& chain, Stage stage) const {
  const Rules rules = attention::rules_of(model);
  Heads heads = projected(model, *chain.begin());
  for (const Stage* next = chain.begin() + 1; next != chain.end() && next[-1] != stage; ++next)
    for (SharedMatrix& head : heads)
      head = rounded(rules.precision, attention::prepared(model, rules, *next, head));
  return heads;
}

/// Values as they are mixed: turned where a mistake turns them.
Sampler::Heads Sampler::values(const Model& model) const {
  const Rules rules = attention::rules_of(model);
  Heads heads = projected(model, Stage::values);
  for (SharedMatrix& head : heads)
    if (rules.added.turn_values)
      head = rounded(rules.precision, rules.added.turn_values->compute(head, model));
  return heads;
}

/// What is added to the scores of those rows, all of it as one bias; nothing else is left of it.
attention::Additions additions_of_rows(const Model& model, const arma::uvec& rows) {
  const attention::Additions& all = model.additions;
  attention::Additions some;
  some.score_cap = all.score_cap, some.sink = all.sink;
  if (!all.has_bias()) return some;
  const Rules rules = attention::rules_of(model);
  for (std::size_t h = 0; h < model.n_heads; ++h) {
    arma::mat bias(model.n_tokens(), model.n_keys(), arma::fill::zeros);
    if (rules.added.position_bias)
      bias = rounded(rules.precision, rules.added.position_bias->compute(h, model));
    if (!all.score_bias.empty()) bias += *all.score_bias[all.score_bias.size() == 1 ? 0 : h];
    some.score_bias.emplace_back(arma::mat(bias.rows(rows)));
  }
  return some;
}

/// A model of which attend() computes those rows only: fewer queries that ask all keys.
Model Sampler::reduced(const Model& model, const Rows& rows) const {
  const arma::uvec chosen = indices(rows);
  Model few;
  attention::Sequence& sequence = few.sequences.emplace_back();
  sequence.tokens = attention::numbered_tokens(rows.size());
  sequence.key_tokens = attention::numbered_tokens(model.n_tokens());
  sequence.embeddings = arma::mat(rows.size(), 0);
  few.n_heads = model.n_heads;
  few.scores = model.scores;
  few.scale = {attention::ScaleRule::factor, attention::scale_factor(model)};
  few.mask = mask_of_rows(model, sample_.sequence, rows);
  few.dropout = model.dropout;
  few.dropout.given.clear();
  if (model.dropout.active())
    for (const arma::mat& kept : kept_by_dropout(model))
      few.dropout.given.emplace_back(arma::mat(kept.rows(chosen)));
  few.departures = model.departures;
  few.departures.scores_swapped = few.departures.mask_edge.transposed = false;
  few.departures.viewed = {};
  few.heads_off = model.heads_off;

  few.departures.misplaced.values_turned = false;
  few.n_kv_heads = model.n_kv_heads;
  few.additions = additions_of_rows(model, chosen);

  const attention::Chain asking = query_chain(model), asked = key_chain(model);
  Heads queries = prepared(model, asking, asking.last()), keys = prepared(model, asked, asked.last());
  if (model.departures.scores_swapped) {  // each head by itself
    keys = of_every_head(model, keys);
    std::swap(queries, keys);
    few.n_kv_heads.reset();
  }
  Heads mixed = values(model);
  if (!few.n_kv_heads) mixed = of_every_head(model, mixed);
  few.given.stages = {{Stage::queries, rows_of(queries, chosen)},
                      {Stage::keys, std::move(keys)},
                      {Stage::values, std::move(mixed)}};
  return few;
}

Trace Sampler::trace(const Model& model) const {
  const Rows rows = needed_rows(model, sample_.rows);
  Trace t = attention::attend(reduced(model, rows));
  t.sequence = sample_.sequence;
  const arma::uvec sampled = indices(sample_.rows);
  t.embeddings = arma::mat(model.sequences[sample_.sequence].embeddings->rows(sampled));
  const auto put = [&](Stage stage, const Heads& all) {
    for (std::size_t h = 0; h < model.n_heads; ++h)
      matrix_of(t, attention::info(stage), h) =
          arma::mat(all[matrix_of_head(model, stage, h)]->rows(sampled));
  };
  for (const attention::Chain& chain : {query_chain(model), key_chain(model)})
    for (const Stage stage : chain) put(stage, prepared(model, chain, stage));
  put(Stage::values, values(model));
  if (const auto* bias = attention::rules_of(model).added.position_bias)
    for (std::size_t h = 0; h < model.n_heads; ++h)
      t.heads[h].adjusted.position_bias =
          arma::mat(rounded(model.departures.precision, bias->compute(h, model)).rows(sampled));
  t.concatenated = merged_rows(model, t, rows, sampled.n_elem);
  t.output = attention::rules_of(model).project.output->compute(t.concatenated, model);
  return t;
}

}  // namespace core::check
