#include "core/graph/shown_stages.hpp"

#include <initializer_list>

#include "core/graph/intended.hpp"
#include "core/graph/order.hpp"

namespace core::attention {
namespace {

StageSet set_of(std::initializer_list<Stage> stages) {
  StageSet set;
  for (const Stage stage : stages) set.set(static_cast<std::size_t>(stage));
  return set;
}

/// Whether the rules of the model have such a stage, known or not.
bool has(const Model& m, const Rules& rules, Stage stage) {
  switch (stage) {
    case Stage::key_embeddings:
      return m.has_memory();
    case Stage::normed_queries:
    case Stage::normed_keys:
      return rules.added.norm;
    case Stage::rotated_queries:
    case Stage::rotated_keys:
      return rules.added.turn_queries;
    case Stage::capped_scores:
      return rules.added.cap;
    case Stage::position_bias:
      return rules.added.position_bias;
    case Stage::biased_scores:
      return rules.added.add_biases;
    case Stage::unmasked_weights:
      return rules.unmasked.softmax;
    case Stage::zeroed_weights:
      return rules.unmasked.zero;
    case Stage::row_sums:
      return rules.unmasked.sum;
    default:
      return true;
  }
}

/// What a stage is made of when it is computed.
StageSet made_of(const Model& m, const Rules& rules, Stage stage) {
  using enum Stage;
  switch (stage) {
    case queries:
      return set_of({embeddings});
    case keys:
    case values:
      return set_of({m.has_memory() ? key_embeddings : embeddings});
    case normed_queries:
    case rotated_queries:
      return set_of({query_chain(m).before(stage)});
    case normed_keys:
    case rotated_keys:
      return set_of({key_chain(m).before(stage)});
    case scores:
      return set_of({query_chain(m).last(), key_chain(m).last()});
    case scaled_scores:
    case capped_scores:
      return set_of({score_chain(m).before(stage)});
    case biased_scores:
      if (m.additions.positions.has_bias()) return set_of({score_chain(m).before(stage), position_bias});
      return set_of({score_chain(m).before(stage)});
    case masked_scores:
      return set_of({score_chain(m).last(), mask});
    case unmasked_weights:
      return set_of({masked_scores});
    case zeroed_weights:
      return set_of({unmasked_weights, mask});
    case row_sums:
      return set_of({zeroed_weights});
    case weights:
      if (rules.unmasked.sum) return set_of({zeroed_weights, row_sums});
      return rules.unmasked.softmax ? set_of({unmasked_weights, mask}) : set_of({masked_scores});
    case dropped_weights:
      return set_of({weights, dropout_mask});
    case contexts:
      return set_of({dropped_weights, values});
    case concatenated:
      return set_of({contexts});
    case output:
      return set_of({concatenated});
    case embeddings:
    case key_embeddings:
    case position_bias:
    case mask:
    case dropout_mask:
      break;
  }
  return {};
}

/// Whether a stage can be computed from the stages that are known.
bool computable(const Model& m, const Rules& rules, Stage stage, const StageSet& known) {
  if (stage == Stage::embeddings) return m.has_embeddings();
  if (stage == Stage::scores && rules.score == &intended::uniform) return true;
  // The embeddings are those of the tokens that ask; of other tokens that are asked they say nothing.
  if ((stage == Stage::keys || stage == Stage::values) && m.n_keys() != m.n_tokens() && !m.has_memory())
    return false;
  return (made_of(m, rules, stage) & ~known).none();
}

/// Those that are given or can be computed, one after the other, from the known ones.
StageSet known_from(const Model& m, const Rules& rules, const StageSet& given, StageSet known) {
  for (std::size_t k = 0; k < n_stages; ++k) {
    const Stage stage = static_cast<Stage>(k);
    known[k] = given[k] || (has(m, rules, stage) && computable(m, rules, stage, known));
  }
  return known;
}

}  // namespace

StageSet shown_stages(const Model& model) {
  const Rules rules = rules_of(model);
  StageSet given, needed = set_of({Stage::output});
  for (const GivenStage& stage : model.given.stages) given.set(static_cast<std::size_t>(stage.stage));
  StageSet known = known_from(model, rules, given, {}), before;
  // Where a departure takes stages in another order than the table has them, one round is not enough.
  for (; known != before; known = known_from(model, rules, given, known)) before = known;
  for (before.reset(); needed != before;) {
    before = needed;
    for (std::size_t k = n_stages; k-- > 0;)
      if (needed[k] && !given[k] && has(model, rules, static_cast<Stage>(k)))
        needed |= made_of(model, rules, static_cast<Stage>(k));
  }
  return known & (needed | given);
}

bool is_computed(const Model& model, Stage stage) {
  return contains(shown_stages(model), stage) && !model.given.find(stage);
}

}  // namespace core::attention
