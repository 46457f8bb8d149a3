#include "core/attention/attend.hpp"

#include "core/attention/dropout.hpp"
#include "core/attention/rounding.hpp"
#include "core/attention/rules.hpp"
#include "core/attention/stage_source.hpp"
#include "core/attention/visible.hpp"

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
  t.mask = source.shows(Stage::mask) ? visible_cells(model, sequence)
                                     : arma::ones(model.n_tokens(), model.n_keys());

  const auto projected = [&](Stage stage, const Projecting* rule) {
    return source.computes(stage) ? rule->compute(t.embeddings, model) : arma::mat();
  };
  const arma::mat q = projected(Stage::queries, rules.project.query);
  const arma::mat k = projected(Stage::keys, rules.project.key);
  const arma::mat v = projected(Stage::values, rules.project.value);
  const std::vector<arma::mat> dropout_masks = drawn_dropout_masks(model, sequence);

  std::vector<arma::mat> contexts;
  for (std::size_t h = 0; h < model.n_heads; ++h) {
    HeadTrace& head = t.heads.emplace_back();
    const HeadSoFar so_far{model, rules, head};
    const auto stage = [&](Stage which, const auto* rule, const auto&... inputs) {  // given, or computed
      return source(which, h, [&] { return rounded(rules.precision, rule->compute(inputs...)); });
    };
    head.queries = stage(Stage::queries, rules.split.query, q, h, model.n_heads);
    head.keys = stage(Stage::keys, rules.split.key, k, h, model.n_heads);
    head.values = stage(Stage::values, rules.split.value, v, h, model.n_heads);
    head.scores = stage(Stage::scores, rules.score, head.queries, head.keys, model);
    head.scaled_scores = stage(Stage::scaled_scores, rules.scale, head.scores, model);
    head.dropout_mask = source(Stage::dropout_mask, h, [&] { return dropout_masks[h]; });
    head.masked_scores = stage(Stage::masked_scores, rules.mask, head.scaled_scores, t.mask, so_far);
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
