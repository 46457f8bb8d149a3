#include "app/work/whole_reading.hpp"

#include <algorithm>
#include <cmath>
#include <thread>

#include "core/experiment/usual_roles.hpp"
#include "core/transformer/layer_model.hpp"
#include "core/transformer/lens.hpp"

namespace app {
namespace {

namespace experiment = core::experiment;
namespace transformer = core::transformer;

constexpr std::size_t n_listed = 10;
constexpr std::size_t quick_logits = 100'000;   // looked at within a frame
constexpr std::size_t quick_numbers = 500'000;  // of a layer's projections, likewise
constexpr auto between_deliveries = std::chrono::milliseconds(60);

/// Whether a layer was made of the same numbers and tokens.
bool has_input(const core::attention::Model& of_pass, const experiment::Reading& reading,
               const transformer::LayerRun& run) {
  const core::attention::Sequence& sequence = of_pass.sequences.front();
  const arma::mat& made_of = sequence.embeddings;
  if (sequence.tokens != reading.names || made_of.n_rows != run.attention_input.n_rows ||
      made_of.n_cols != run.attention_input.n_cols)
    return false;
  return std::equal(made_of.begin(), made_of.end(), run.attention_input.begin(),
                    [](double a, float b) { return a == static_cast<double>(b); });
}

/// last_now and last_before are what was read before, or nullptr.
BothReadings read_both(const transformer::Transformer& model, const experiment::Experiment& wanted,
                       const std::shared_ptr<const experiment::Reading>& last_now,
                       const std::shared_ptr<const experiment::Reading>& last_before, const Jobs& jobs,
                       const transformer::Means& means) {
  const auto read = [&](const experiment::Experiment& what, const experiment::Reading* nearest) {
    return std::shared_ptr<const experiment::Reading>(
        jobs.leave(std::make_unique<experiment::Reading>(experiment::read(model, what, nearest, means))));
  };
  experiment::Experiment plain = wanted;
  plain.heads_off.clear(), plain.layers.clear();
  BothReadings both;
  both.before =
      last_before && last_before->experiment == plain ? last_before : read(plain, last_before.get());
  both.now = both.before;
  if (!wanted.is_edited()) return both;
  const auto start = Jobs::Clock::now();
  const bool is_near =
      last_now && last_now->experiment.text == wanted.text && last_now->experiment.made == wanted.made;
  both.now = read(wanted, is_near ? last_now.get() : both.before.get());
  both.ms = std::chrono::duration<double, std::milli>(Jobs::Clock::now() - start).count();
  return both;
}

Prediction predict_next(const transformer::Transformer& model, const experiment::Reading& now,
                        const experiment::Reading& before, std::optional<std::size_t> token,
                        double temperature, const transformer::Means& means) {
  Prediction result;
  if (now.logits.empty()) return result;
  const auto last = [](const experiment::Reading& of) { return arma::frowvec(of.logits.tail_rows(1)); };
  const arma::frowvec logits = last(now), logits_before = last(before);
  const auto next = [&](std::size_t id) {
    return NextToken{id, transformer::token_name(*model.tokenizer, id),
                     transformer::probability_of(logits, id, temperature),
                     transformer::probability_of(logits_before, id, temperature)};
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
    const std::size_t best = transformer::best_guesses(row, 1, n_tokens).front().id;
    result.guesses.push_back({transformer::token_name(*model.tokenizer, best),
                              transformer::probability_of(row, best, temperature),
                              transformer::probability_of(row, result.chosen.id, temperature)});
  }
  result.adds = experiment::contributions_in(model, now, result.chosen.id, means);
  result.added_before =
      &now == &before ? result.adds : experiment::contributions_in(model, before, result.chosen.id, means);
  for (const auto* parts : {&result.adds, &result.added_before})
    if (*parts)
      for (const auto& layer : (*parts)->heads)
        for (const double head : layer)
          result.largest_addition = std::max(result.largest_addition, std::abs(head));
  return result;
}

}  // namespace

WholeReading::WholeReading(Jobs& jobs)
    : readings_(jobs), prediction_(jobs), layer_(jobs), usual_(jobs), effects_lane_(jobs) {}

WholeReading::Key WholeReading::key_of(const WholeModel& whole) {
  Key key{whole.transformer.weights.get(), whole.experiment};
  key.experiment.layer = 0;
  return key;
}

bool WholeReading::is_of(const WholeModel& whole) const {
  return readings_.is_of(key_of(whole));
}

void WholeReading::begin_with(Reading reading) {
  clear();
  opened_ = std::move(reading);
  if (!pool_) pool_ = std::make_shared<core::ThreadPool>(std::max(1u, std::thread::hardware_concurrency()));
}

void WholeReading::clear() {
  readings_.clear(), prediction_.clear(), layer_.clear(), usual_.clear();
  opened_.reset();
  effects_lane_.cancel();
  effects_of_.reset(), effects_.clear();
  sweeps_ = false;
  numbered_.clear();
}

void WholeReading::follow(const WholeModel& whole, const LayersLook& look, std::size_t selected_head) {
  follow_text(whole);
  if (!readings()) return;
  number_maps();
  follow_usual(whole);
  follow_prediction(whole, look);
  follow_layer(whole);
  follow_effects(whole, look, selected_head);
}

void WholeReading::follow_text(const WholeModel& whole) {
  const Key key = key_of(whole);
  if (!readings_.needs(key)) return;
  const BothReadings* last = readings();
  readings_.begin(key, When::beside,
                  [model = whole.transformer, wanted = key.experiment, now = last ? last->now : opened_,
                   before = last ? last->before : opened_, pool = pool_,
                   &jobs = effects_lane_.jobs()](const core::Token& token) {
                    return read_both(model, wanted, now, before, jobs, {*pool, token});
                  });
}

void WholeReading::follow_usual(const WholeModel& whole) {
  const UsualKey key{whole.transformer.weights.get()};
  if (!usual_.needs(key)) return;
  usual_.begin(key, When::beside, [model = whole.transformer, pool = pool_](const core::Token& token) {
    return experiment::usual_roles(model, {*pool, token});
  });
}

void WholeReading::number_maps() {
  const auto& layers = readings()->now->layers;
  numbered_.resize(layers.size());
  versions_.resize(layers.size());
  for (std::size_t l = 0; l < layers.size(); ++l)
    if (std::exchange(numbered_[l], layers[l]) != layers[l]) versions_[l] = ++last_version_;
}

std::uint64_t WholeReading::version_of(std::size_t layer) const {
  return layer < versions_.size() ? versions_[layer] : 0;
}

void WholeReading::follow_prediction(const WholeModel& whole, const LayersLook& look) {
  const PredictionKey key{readings()->now, readings()->before, look.token, look.temperature};
  const bool is_quick = key.now->logits.n_elem <= quick_logits;
  const When when = is_quick ? When::at_once : When::beside;
  if (!prediction_.needs(key, when)) return;
  prediction_.begin(key, when, [key, model = whole.transformer, pool = pool_](const core::Token& token) {
    return predict_next(model, *key.now, *key.before, key.token, key.temperature, {*pool, token});
  });
}

void WholeReading::follow_layer(const WholeModel& whole) {
  const Reading now = readings()->now;
  const std::size_t layer = std::min(whole.experiment.layer, now->pass.layers.size() - 1);
  const LayerKey key{now->pass.layers[layer], layer};
  if (whole.layer == layer && whole.run == key.run) return;
  if (whole.layer == layer && has_input(whole.of_pass, *now, *key.run)) {
    if (layer_.needs(key, When::at_once))
      layer_.begin(key, When::at_once, [key](const core::Token&) {
        return LayerMade{std::nullopt, key.run, key.layer};
      });
    return;
  }
  const auto& sizes = whole.transformer.architecture.sizes;
  const When when = sizes.d_model * sizes.d_model * 4 <= quick_numbers ? When::at_once : When::beside;
  if (!layer_.needs(key, when)) return;
  layer_.begin(key, when, [key, now, model = whole.transformer](const core::Token&) {
    return LayerMade{experiment::layer_of(model, *now, key.layer), key.run, key.layer};
  });
}

const LayerMade* WholeReading::layer() const {
  const LayerMade* made = layer_.value();
  const bool is_of_last = made && readings() && made->layer < readings()->now->pass.layers.size() &&
                          readings()->now->pass.layers[made->layer] == made->run;
  return is_of_last ? made : nullptr;
}

void WholeReading::sweep() {
  sweeps_ = true;
}

std::optional<HeadEffect> WholeReading::effect(std::size_t layer, std::size_t head) const {
  const auto known = effects_.find({layer, head});
  return known == effects_.end() ? std::nullopt : std::optional(known->second);
}

void WholeReading::follow_effects(const WholeModel& whole, const LayersLook& look,
                                  std::size_t selected_head) {
  const Reading now = readings()->now;
  const Prediction* next = prediction();
  if (!next || next->guesses.empty()) return;
  const EffectKey key{now, next->chosen.id, look.temperature};
  if (effects_of_ != key) {
    effects_lane_.cancel();
    if (std::exchange(effects_of_, key)) sweeps_ = false;  // it was asked for of another token or text
    effects_.clear();
    largest_effect_ = 0;
  }
  if (effects_lane_.is_busy() || !is_of(whole) || failed_of_ == key) return;
  std::vector<Head> wanted;
  const auto want = [&](std::size_t layer, std::size_t head) {
    if (!effects_.contains({layer, head}) && !now->experiment.heads_off.contains({layer, head}))
      wanted.push_back({layer, head});
  };
  if (selected_head < now->layers[whole.layer]->heads.size()) want(whole.layer, selected_head);
  if (sweeps_)
    for (std::size_t l = now->layers.size(); l-- > 0;)  // the last layers are quick
      for (std::size_t h = 0; h < now->layers[l]->heads.size(); ++h) want(l, h);
  if (wanted.empty()) {
    sweeps_ = false;
    return;
  }
  const auto failed = [this, key](const Failure& failure) {
    failed_of_ = key;
    if (!failure.is_stopped) effects_lane_.jobs().tell(failure);
  };
  const auto find = [this, key, wanted, model = whole.transformer,
                     pool = pool_](const core::Token& token) -> Jobs::Delivery {
    const auto begin = Jobs::Clock::now();
    const arma::frowvec logits = key.reading->logits.tail_rows(1);
    std::vector<std::pair<Head, HeadEffect>> found;
    for (const Head& head : wanted) {
      const arma::frowvec without =
          experiment::logits_without(model, *key.reading, head.first, head.second, {*pool, token});
      found.push_back({head,
                       {without[key.token] - logits[key.token],
                        transformer::probability_of(without, key.token, key.temperature)}});
      if (Jobs::Clock::now() - begin > between_deliveries) break;
    }
    return [this, key, found] {
      if (effects_of_ != key) return;
      for (const auto& [head, effect] : found) {
        effects_[head] = effect;
        largest_effect_ = std::max(largest_effect_, std::abs(effect.logit_change));
      }
    };
  };
  effects_lane_.start(find, failed);
}

bool WholeReading::is_busy() const {
  return readings_.is_busy() || prediction_.is_busy() || layer_.is_busy() || usual_.is_busy() ||
         effects_lane_.is_busy() || sweeps_;
}

}  // namespace app
