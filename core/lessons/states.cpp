#include "core/lessons/states.hpp"

#include "core/base/error.hpp"
#include "core/editing/presets.hpp"
#include "core/editing/sentence.hpp"

namespace core::lessons {

using attention::Model;

Model preset(std::string_view name) {
  const editing::Preset* found = editing::find_preset(name);
  if (!found) throw Error("preset " + std::string(name) + ": there is no such preset");
  return found->make();
}

Model equal_shares(bool causal) {
  Model m;
  m.sequences = {{text::words("The cat sat on the mat"), arma::mat(6, 6, arma::fill::eye)}};
  m.scores = attention::ScoreRule::uniform;
  m.mask.causal = causal;
  return m;
}

Model bigram() {
  Model m = equal_shares(true);
  for (std::size_t i = 1; i < m.n_tokens(); ++i)
    for (std::size_t j = 0; j < i; ++j) m.mask.cells.push_back({i, j, false});
  return m;
}

Model school() {
  return text::with_sentence(preset("000-causal"), text::words("I'm going to school tomorrow"), 123);
}

Model hidden_score(double hidden) {
  Model m;
  const arma::mat one_hot(2, 2, arma::fill::eye);
  m.sequences = {{attention::numbered_tokens(2), one_hot}};
  attention::Projections p;
  p.query.weight = arma::mat{{0, hidden}, {0, 0}};  // one-hot tokens and keys: the scores are W_q itself
  p.key.weight = p.value.weight = one_hot;
  m.projections = p;
  m.scale.rule = attention::ScaleRule::none;
  m.mask.method = attention::MaskMethod::renormalise;
  return m;
}

}  // namespace core::lessons
