#include "core/attention/shown_stages.hpp"

#include <initializer_list>

#include "core/attention/intended.hpp"

namespace core::attention {
namespace {

StageSet set_of(std::initializer_list<Stage> stages) {
  StageSet set;
  for (const Stage stage : stages) set.set(static_cast<std::size_t>(stage));
  return set;
}

/// Whether the rules of the model have such a stage, known or not.
bool has(const Rules& rules, Stage stage) {
  if (stage == Stage::unmasked_weights) return rules.unmasked.softmax;
  if (stage == Stage::zeroed_weights) return rules.unmasked.zero;
  return stage != Stage::row_sums || rules.unmasked.sum;
}

/// What a stage is made of when it is computed.
StageSet made_of(const Rules& rules, Stage stage) {
  using enum Stage;
  switch (stage) {
    case queries:
    case keys:
    case values:
      return set_of({embeddings});
    case scores:
      return set_of({queries, keys});
    case scaled_scores:
      return set_of({scores});
    case masked_scores:
      return set_of({scaled_scores, mask});
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
  if ((stage == Stage::keys || stage == Stage::values) && m.n_keys() != m.n_tokens()) return false;
  return (made_of(rules, stage) & ~known).none();
}

}  // namespace

StageSet shown_stages(const Model& model) {
  const Rules rules = rules_of(model);
  StageSet known, given, needed = set_of({Stage::output});
  for (std::size_t k = 0; k < n_stages; ++k) {
    const Stage stage = static_cast<Stage>(k);
    given[k] = model.given.find(stage) != nullptr;
    known[k] = given[k] || (has(rules, stage) && computable(model, rules, stage, known));
  }
  for (std::size_t k = n_stages; k-- > 0;)
    if (needed[k] && !given[k]) needed |= made_of(rules, static_cast<Stage>(k));
  return known & (needed | given);
}

bool is_computed(const Model& model, Stage stage) {
  return contains(shown_stages(model), stage) && !model.given.find(stage);
}

}  // namespace core::attention
