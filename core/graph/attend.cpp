#include "core/graph/attend.hpp"

#include "core/graph/dropout.hpp"
#include "core/graph/order.hpp"
#include "core/graph/rounding.hpp"
#include "core/graph/rules.hpp"
#include "core/graph/stage_source.hpp"
#include "core/graph/stages.hpp"
#include "core/graph/visible.hpp"

namespace core::attention {

Trace attend(const Model& model, std::size_t sequence) {
  require(model, sequence);
  return attend_checked(model, sequence);
}

Trace attend_checked(const Model& model, std::size_t sequence) {
  const Rules rules = rules_of(model);
  const StageSource source(model, sequence);
  Trace t;
  t.sequence = sequence;
  t.embeddings = *model.sequences[sequence].embeddings;
  t.key_embeddings = *model.sequences[sequence].key_embeddings;
  t.mask = source.shows(Stage::mask) ? visible_cells(model, sequence)
                                     : arma::ones(model.n_tokens(), model.n_keys());

  const StageMatrix& memory = model.has_memory() ? t.key_embeddings : t.embeddings;
  const auto projected = [&](Stage stage, const Projecting* rule, const arma::mat& from) {
    return source.computes(stage) ? rule->compute(from, model) : arma::mat();
  };
  const arma::mat q = projected(Stage::queries, rules.project.query, t.embeddings);
  const arma::mat k = projected(Stage::keys, rules.project.key, memory);
  const arma::mat v = projected(Stage::values, rules.project.value, memory);
  const std::vector<arma::mat> dropout_masks = drawn_dropout_masks(model, sequence);

  std::vector<arma::mat> contexts;
  for (std::size_t h = 0; h < model.n_heads; ++h) {
    HeadTrace& head = t.heads.emplace_back();
    const std::size_t g = model.group_of(h), n_groups = model.n_groups();
    const HeadSoFar so_far{model, rules, head, h};
    const auto stage = [&](Stage which, const auto* rule, const auto&... inputs) {  // given, or computed
      return source(which, h, [&] { return rounded(rules.precision, rule->compute(inputs...)); });
    };
    head.queries = stage(Stage::queries, rules.split.query, q, h, model.n_heads);
    head.keys = stage(Stage::keys, rules.split.key, k, g, n_groups);
    head.values = source(Stage::values, h, [&] {
      const arma::mat own = rules.split.value->compute(v, g, n_groups);
      return rounded(rules.precision,
                     rules.added.turn_values ? rules.added.turn_values->compute(own, model) : own);
    });
    const auto step = [&](Stage which, const arma::mat& from) {
      switch (which) {
        case Stage::scaled_scores:
          return stage(which, rules.scale, from, model);
        case Stage::capped_scores:
          return stage(which, rules.added.cap, from, model);
        case Stage::biased_scores:
          return stage(which, rules.added.add_biases, from, head.adjusted.position_bias, h, model);
        default:  // normed or rotated
          return source(which, h,
                        [&] { return rounded(rules.precision, prepared(model, rules, which, from)); });
      }
    };
    const auto last_of =
        [&](const Chain& chain) -> const StageMatrix& {  // each stage of it of the one before
      for (const Stage* which = chain.begin() + 1; which != chain.end(); ++which)
        matrix_of(t, info(*which), h) = step(*which, matrix_of(t, info(which[-1]), h));
      return matrix_of(t, info(chain.last()), h);
    };
    const StageMatrix& asking = last_of(query_chain(model));
    const StageMatrix& asked = last_of(key_chain(model));
    head.scores = stage(Stage::scores, rules.score, asking, asked, model);
    head.adjusted.position_bias = stage(Stage::position_bias, rules.added.position_bias, h, model);
    const StageMatrix& adjusted = last_of(score_chain(model));
    head.dropout_mask = source(Stage::dropout_mask, h, [&] { return dropout_masks[h]; });
    head.masked_scores = stage(Stage::masked_scores, rules.mask, adjusted, t.mask, so_far);
    head.unmasked_weights =
        stage(Stage::unmasked_weights, rules.unmasked.softmax, head.masked_scores, so_far);
    head.zeroed_weights = stage(Stage::zeroed_weights, rules.unmasked.zero, head.unmasked_weights, t.mask);
    head.row_sums = stage(Stage::row_sums, rules.unmasked.sum, head.zeroed_weights);
    head.weights = stage(Stage::weights, rules.weigh, t.mask, so_far);
    head.dropped_weights = stage(Stage::dropped_weights, rules.drop, head.weights, head.dropout_mask);
    head.contexts = stage(Stage::contexts, rules.mix, head.dropped_weights, head.values, model);
    contexts.push_back(model.is_off(h) ? arma::zeros(arma::size(*head.contexts)) : *head.contexts);
  }
  t.concatenated = source(Stage::concatenated, 0, [&] { return rules.merge->compute(contexts); });
  t.output = source(Stage::output, 0, [&] { return rules.project.output->compute(t.concatenated, model); });
  return t;
}

}  // namespace core::attention
