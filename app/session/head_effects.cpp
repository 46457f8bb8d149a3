#include "app/session/head_effects.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/model/lens.hpp"

namespace app {
namespace {

constexpr auto between_deliveries = std::chrono::milliseconds(60);

}  // namespace

std::vector<HeadEffects::Head> HeadEffects::missing(Head wanted) const {
  const core::experiment::Reading& reading = *found_.of->reading;
  std::vector<Head> heads;
  const auto want = [&](Head head) {
    if (head.second < reading.layers[head.first]->heads.size() && !found_.effects.contains(head) &&
        !reading.experiment.heads_off.contains(head))
      heads.push_back(head);
  };
  want(wanted);
  if (found_.sweeps)
    for (std::size_t l = reading.layers.size(); l-- > 0;)  // the last layers are quick
      for (std::size_t h = 0; h < reading.layers[l]->heads.size(); ++h) want({l, h});
  return heads;
}

void HeadEffects::follow(const core::transformer::Transformer& model, const EffectsKey& key, Head wanted,
                         const std::shared_ptr<core::ThreadPool>& pool) {
  if (found_.of != key) {
    const bool sweeps = !found_.of && found_.sweeps;  // else it was asked for of another token or text
    clear();
    found_.of = key;
    found_.sweeps = sweeps;
  }
  if (lane_.is_busy()) return;
  const std::vector<Head> heads = found_.has_failed ? std::vector<Head>() : missing(wanted);
  if (heads.empty()) {
    found_.sweeps = false;
    return;
  }
  const auto find = [this, key, heads, model, pool](const core::Token& token) -> Jobs::Delivery {
    const auto begin = Jobs::Clock::now();
    const arma::frowvec logits = key.reading->logits.tail_rows(1);
    std::vector<std::pair<Head, HeadEffect>> found;
    for (const Head& head : heads) {
      const arma::frowvec without =
          core::experiment::logits_without(model, *key.reading, head.first, head.second, {*pool, token});
      found.push_back({head,
                       {without[key.token] - logits[key.token],
                        core::transformer::probability_of(without, key.token, key.temperature)}});
      if (Jobs::Clock::now() - begin > between_deliveries) break;
    }
    return [this, found] {
      for (const auto& [head, effect] : found) {
        found_.effects[head] = effect;
        found_.largest = std::max(found_.largest, std::abs(effect.logit_change));
      }
    };
  };
  lane_.start(find, [this](const Failure& failure) {
    found_.has_failed = true;
    found_.sweeps = false;
    lane_.jobs().tell(failure);
  });
}

void HeadEffects::clear() {
  lane_.cancel();
  found_ = {};
}

std::optional<HeadEffect> HeadEffects::of(Head head) const {
  const auto known = found_.effects.find(head);
  return known == found_.effects.end() ? std::nullopt : std::optional(known->second);
}

}  // namespace app
