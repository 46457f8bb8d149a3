#include "core/model/predictions.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/error.hpp"

namespace core::transformer {

std::vector<Guess> best_guesses(const arma::frowvec& logits, std::size_t n_guesses, std::size_t n_tokens) {
  std::vector<std::size_t> order(std::min<std::size_t>(n_tokens, logits.n_elem));
  std::iota(order.begin(), order.end(), std::size_t{0});
  n_guesses = std::min(n_guesses, order.size());
  std::partial_sort(
      order.begin(), order.begin() + static_cast<std::ptrdiff_t>(n_guesses), order.end(),
      [&](std::size_t a, std::size_t b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; });
  const double largest = logits.max();
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - largest);
  std::vector<Guess> guesses;
  for (std::size_t k = 0; k < n_guesses; ++k)
    guesses.push_back({order[k], logits[order[k]], std::exp(logits[order[k]] - largest) / sum});
  return guesses;
}

std::vector<Place> places_to_guess(const Transformer& model, const std::vector<std::size_t>& ids) {
  Places places = find_places(model, ids);
  if (places.all.empty()) throw Error(model.path.string() + ": " + places.why_none);
  return std::move(places.all);
}

Places find_places(const Transformer& model, const std::vector<std::size_t>& ids) {
  if (model.architecture.causal) return {{{ids.size(), ids.size() - 1}}};
  std::optional<std::size_t> mask;
  for (const char* piece : {"[MASK]", "<mask>"})
    if (!mask) mask = model.tokenizer->find(piece);
  if (!mask) return {{}, "its tokenizer has no [MASK] or <mask>, so nothing can be guessed"};
  Places places;
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (ids[i] == *mask) places.all.push_back({i, i});
  if (places.all.empty())
    places.why_none = "tokens of this model see both sides: expected a text with " +
                      model.tokenizer->piece(*mask) + " where a word is to be guessed";
  return places;
}

}  // namespace core::transformer
