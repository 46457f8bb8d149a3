#include "core/model/prediction.hpp"

#include <algorithm>
#include <cmath>

#include "core/model/layer_model.hpp"
#include "core/model/lens.hpp"

namespace core::experiment {
namespace {

using transformer::Contributions;
using transformer::Probabilities;

constexpr std::size_t n_listed = 10;

arma::frowvec last_logits(const Reading& reading) {
  return reading.logits.tail_rows(1);
}

double largest_of_heads(const std::optional<Contributions>& parts) {
  double largest = 0;
  if (!parts) return largest;
  for (const auto& layer : parts->heads)
    for (const double head : layer) largest = std::max(largest, std::abs(head));
  return largest;
}

}  // namespace

Prediction predict_next(const transformer::Transformer& model, const Reading& now, const Reading& before,
                        std::optional<std::size_t> token, double temperature,
                        const transformer::Means& means) {
  Prediction result;
  if (now.logits.empty()) return result;
  const arma::frowvec logits = last_logits(now);
  const Probabilities probable(logits, temperature), was_probable(last_logits(before), temperature);
  const auto next = [&](std::size_t id) {
    return NextToken{id, transformer::token_name(*model.tokenizer, id), probable.of(id), was_probable.of(id)};
  };
  const std::size_t n_tokens = std::min<std::size_t>(model.tokenizer->size(), logits.n_elem);
  result.others = 1;
  for (const auto& guess : transformer::best_guesses(logits, n_listed, n_tokens)) {
    result.table.push_back(next(guess.id));
    result.others -= result.table.back().now;
  }
  result.others = std::max(0.0, result.others);
  result.n_others = n_tokens - result.table.size();
  result.chosen = token && *token < n_tokens ? next(*token) : result.table.front();
  result.logit = logits[result.chosen.id];
  for (std::size_t l = 0; l < now.logits.n_rows; ++l) {
    const arma::frowvec row = now.logits.row(l);
    const Probabilities there(row, temperature);
    const std::size_t best = transformer::best_guesses(row, 1, n_tokens).front().id;
    result.guesses.push_back(
        {transformer::token_name(*model.tokenizer, best), there.of(best), there.of(result.chosen.id)});
  }
  result.adds = contributions_in(model, now, result.chosen.id, means);
  result.added_before =
      &now == &before ? result.adds : contributions_in(model, before, result.chosen.id, means);
  result.largest_addition = std::max(largest_of_heads(result.adds), largest_of_heads(result.added_before));
  return result;
}

}  // namespace core::experiment
