#pragma once

#include <algorithm>
#include <array>

#include "core/graph/address.hpp"
#include "core/graph/given_model.hpp"
#include "core/graph/injected_bugs.hpp"
#include "tests/support/random_model.hpp"

namespace core::explain {

/// Overrides up to two stages and some cells, and ablates some heads.
inline void give_any(support::Random& random, attention::Model& m) {
  using namespace attention;
  using enum Stage;
  constexpr std::array all{queries,       keys,          values,  scores,
                           scaled_scores, masked_scores, weights, dropout_mask};
  for (std::size_t k = support::below(random, 3); k > 0; --k)
    set_given_stage(m, support::given_stage(random, m, all[support::below(random, all.size())]));
  for (std::size_t k = 0; k < 20; ++k) {
    const auto stage = static_cast<Stage>(support::below(random, n_stages));
    const StageShape shape = shape_of(m, stage);
    const std::size_t n_heads = n_matrices(m, stage);
    if (stage != embeddings && stage != key_embeddings && stage != mask)
      m.given.cells.push_back(
          {{stage, support::below(random, m.sequences.size()), support::below(random, n_heads),
            support::below(random, shape.n_rows), support::below(random, shape.n_cols)},
           support::number(random)});
  }
  std::ranges::sort(m.given.cells, {}, &GivenCell::place);
  const auto twice = std::ranges::unique(m.given.cells, {}, &GivenCell::place);
  m.given.cells.erase(twice.begin(), twice.end());
  remove_invalid_overrides(m);
  for (std::size_t h = 0; h < m.n_heads; ++h)
    if (support::coin(random)) m.heads_off.push_back(h);
}

/// Returns a model with random options; some of its queries may have no unmasked key.
inline attention::Model any_model(support::Random& random) {
  using namespace attention;
  using support::below;
  using support::coin;
  const std::size_t n_heads = 1 + below(random, 3), d_head = 1 + below(random, 3), n = 1 + below(random, 6);
  const std::size_t d_out = n_heads * d_head, d_in = 1 + below(random, 4);
  Model m = support::model(random, n, d_in, d_out, n_heads, 1 + below(random, 2));
  for (Linear* l :
       {&m.projections->query, &m.projections->key, &m.projections->value, &*m.projections->output}) {
    l->bias.reset();
    if (coin(random)) l->bias = support::matrix(random, 1, d_out);
  }
  if (coin(random))
    m.projections->output.reset();
  else if (coin(random))
    m.projections->output = support::linear(random, d_out, 1 + below(random, 7), coin(random));
  if (below(random, 4) == 0) {
    m.projections.reset();
    for (Sequence& s : m.sequences) s.embeddings = support::matrix(random, n, d_out);
  }
  if (below(random, 4) == 0) support::add_cross_attention_source(random, m);
  if (coin(random)) support::add_groups(random, m);
  if (coin(random)) support::add_additions(random, m);
  const std::size_t n_keys = m.n_keys();
  m.scores = below(random, 4) == 0 ? ScoreRule::uniform : ScoreRule::query_key;
  m.scale = {static_cast<ScaleRule>(below(random, 4)), support::number(random)};
  m.mask.causal = coin(random);
  m.mask.method = static_cast<MaskMethod>(below(random, 4));
  m.mask.empty_rows = coin(random) ? EmptyRows::nan : EmptyRows::zeros;
  const bool blinds_a_query = coin(random);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n_keys; ++j)
      if (blinds_a_query && i == 0)
        m.mask.cells.push_back({i, j, false});
      else if (below(random, 4) == 0)
        m.mask.cells.push_back({i, j, coin(random)});
  if (below(random, 3) == 0) support::add_mask_rules(random, m);
  m.dropout.rate = std::array{0.0, 0.25, 0.5, 1.0}[below(random, 4)];
  m.dropout.training = below(random, 4) != 0;
  m.dropout.seed = random();
  if (coin(random))
    for (std::size_t k = 0; k < m.sequences.size() * n_heads; ++k)
      m.dropout.given.push_back(support::zeros_and_ones(random, n, n_keys));
  m.dropout.rescale = coin(random);
  const auto seldom = [&] { return below(random, 4) == 0; };
  const auto any_precision = [&] {
    return seldom() ? static_cast<Precision>(below(random, 5)) : Precision::float64;
  };
  m.arithmetic = {any_precision(), any_precision(), seldom(), any_precision()};
  m.mask.edge = {coin(random) ? 0 : static_cast<int>(below(random, 5)) - 2, seldom()};
  if (seldom()) m.mask.large_negative = -1e4;
  if (coin(random)) m.dropout.place = static_cast<DropoutPlace>(below(random, 3));
  for (const bugs::Bug* bug : bugs::offered_bugs()) {
    if (bug->is_option() || bug->change_mask || below(random, 6) != 0) continue;
    const bool has_size = !coin(random);
    const double size = has_size ? 1 + static_cast<double>(below(random, 4)) : 0;
    m = bugs::with_bug(
        m, {.bug = bug, .numbers = bug->has_size && has_size ? bugs::Numbers{size} : bugs::Numbers()});
  }
  for (const char* form :
       {"heads_interleaved:combined", "blocks_not_rescaled:sum", "blocks_not_rescaled:contexts"})
    if (seldom()) m = bugs::with_bug(m, {.bug = bugs::find_bug(form), .numbers = {2}});
  if (below(random, 3) == 0) give_any(random, m);
  m.merge = coin(random) ? CombineRule::concatenate : CombineRule::reshape_without_transpose;
  return m;
}

/// Calls visit with the address of every cell of every stage that the model has.
template <class Visit>
void for_each_cell(const attention::Model& model, const attention::Trace& trace, Visit visit) {
  for (const attention::StageInfo& stage : attention::stages()) {
    if (!stage.present(model)) continue;
    for (std::size_t h = 0; h < stage.count(model.n_heads); ++h) {
      const arma::mat& numbers = trace.at(stage.stage, h);
      for (std::size_t i = 0; i < numbers.n_rows; ++i)
        for (std::size_t j = 0; j < numbers.n_cols; ++j) visit(CellAddress{stage.stage, h, i, j});
    }
  }
}

}  // namespace core::explain
