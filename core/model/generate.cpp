#include "core/model/generate.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "core/model/predictions.hpp"

namespace core::transformer {

arma::frowvec read_on(const Transformer& model, Cache& cache, const std::vector<std::size_t>& ids,
                      const Interventions& interventions, const Means& means) {
  const Sizes& sizes = model.architecture.sizes;
  if (!model.architecture.causal)
    throw Error(model.path.string() +
                ": tokens of this model see both sides, so it cannot go on with a text");
  require_tokens(model, ids, cache.n_tokens);
  cache.layers.resize(sizes.n_layers);
  arma::fmat residual = embedded(model, ids, cache.n_tokens, means.progress);
  for (std::size_t l = 0; l < sizes.n_layers; ++l) {
    means.progress.add(1);
    arma::fmat next;
    const auto layer =
        run_layer(model, l, std::move(residual), std::move(cache.layers[l]), interventions, means, next);
    cache.layers[l] = std::move(layer->keys);
    residual = std::move(next);
  }
  cache.n_tokens += ids.size();
  return logits_of(model, residual.tail_rows(1), means);
}

std::size_t chosen(const arma::frowvec& logits, std::size_t n_tokens, const Choice& choice,
                   random::Generator& generator) {
  if (choice.temperature == 0) return best_guesses(logits, 1, n_tokens).front().id;
  const std::size_t n_guesses = choice.top == 0 ? n_tokens : std::min(choice.top, n_tokens);
  auto guesses = best_guesses(logits, n_guesses, n_tokens);
  // Of what each lacks to the best, so that no temperature takes a number beyond float64.
  const double best = guesses.front().logit;
  double sum = 0;
  for (Guess& guess : guesses) sum += guess.probability = std::exp((guess.logit - best) / choice.temperature);
  double left = generator.rand(1)[0] * sum;
  for (const Guess& guess : guesses)
    if ((left -= guess.probability) < 0) return guess.id;
  return guesses.front().id;  // where sums were rounded
}

}  // namespace core::transformer
