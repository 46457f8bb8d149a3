#include "app/session/whole_reading.hpp"

#include <algorithm>
#include <cmath>
#include <thread>

#include "core/model/layer_model.hpp"
#include "core/model/lens.hpp"
#include "core/model/usual_roles.hpp"

namespace app {
namespace {

namespace experiment = core::experiment;
namespace transformer = core::transformer;

constexpr std::size_t quick_logits = 100'000;   // looked at within a frame
constexpr std::size_t quick_numbers = 500'000;  // of a layer's projections, likewise

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

}  // namespace

WholeReading::WholeReading(Jobs& jobs)
    : jobs_(jobs),
      readings_(jobs),
      prediction_(jobs),
      layer_(jobs),
      stream_(jobs),
      usual_(jobs),
      effects_(jobs) {}

WholeReading::Key WholeReading::key_of(const WholeModel& whole) {
  Key key{whole.transformer.weights.get(), whole.experiment};
  key.experiment.layer = 0;
  return key;
}

bool WholeReading::is_of(const WholeModel& whole) const {
  return readings_.is_of(key_of(whole));
}

void WholeReading::begin_with(const WholeModel& whole, BothReadings readings) {
  clear();
  readings_.put(key_of(whole), std::move(readings));
  if (!pool_) pool_ = std::make_shared<core::ThreadPool>(std::max(1u, std::thread::hardware_concurrency()));
}

std::optional<WholeReading::Kept> WholeReading::kept() const {
  if (!readings_.value()) return std::nullopt;
  return Kept{*readings_.key(), *readings_.value()};
}

void WholeReading::put_back(Kept kept) {
  clear();
  readings_.put(kept.key, std::move(kept.readings));
}

void WholeReading::clear() {
  readings_.clear(), prediction_.clear(), layer_.clear(), stream_.clear(), usual_.clear();
  effects_.clear();
  numbered_.clear();
}

void WholeReading::follow(const WholeModel& whole, const LayersLook& look, std::size_t selected_head,
                          const std::optional<core::explain::CellAddress>& pinned) {
  // Nothing may be worked out of what another model has read.
  if (readings() && readings_.key()->weights != whole.transformer.weights.get()) clear();
  follow_text(whole);
  if (!readings()) return;
  number_maps();
  follow_usual(whole);
  follow_prediction(whole, look);
  follow_layer(whole);
  follow_stream(whole, pinned);
  follow_effects(whole, look, selected_head);
}

void WholeReading::follow_text(const WholeModel& whole) {
  const Key key = key_of(whole);
  if (!readings_.needs(key)) return;
  const BothReadings* last = readings();
  readings_.begin(
      key, When::beside,
      [model = whole.transformer, wanted = key.experiment, now = last ? last->now : nullptr,
       before = last ? last->before : nullptr, pool = pool_, &jobs = jobs_](const core::Token& token) {
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
    return experiment::predict_next(model, *key.now, *key.before, key.token, key.temperature, {*pool, token});
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

std::optional<WholeReading::StreamKey> WholeReading::stream_key(const WholeModel& whole,
                                                                const core::explain::CellAddress& cell) {
  using core::attention::Stage;
  if ((cell.stage != Stage::embeddings && cell.stage != Stage::output) || !whole.run) return std::nullopt;
  if (cell.row >= whole.run->residual.n_rows || cell.column >= whole.run->residual.n_cols)
    return std::nullopt;
  return StreamKey{whole.run, whole.layer, cell.row, cell.column};
}

void WholeReading::follow_stream(const WholeModel& whole,
                                 const std::optional<core::explain::CellAddress>& pinned) {
  const Reading now = readings()->now;
  const auto key = pinned ? stream_key(whole, *pinned) : std::nullopt;
  if (!key || now->pass.layers[key->layer] != key->run || !stream_.needs(*key)) return;
  stream_.begin(*key, When::beside, [key = *key, now, model = whole.transformer](const core::Token& token) {
    return experiment::stream_number(model, now->pass, key.layer, key.row, key.column, token);
  });
}

const core::experiment::StreamNumber* WholeReading::stream(const WholeModel& whole,
                                                           const core::explain::CellAddress& cell) const {
  const auto key = stream_key(whole, cell);
  return key && stream_.is_of(*key) ? stream_.value() : nullptr;
}

const LayerMade* WholeReading::layer() const {
  const LayerMade* made = layer_.value();
  const bool is_of_last = made && readings() && made->layer < readings()->now->pass.layers.size() &&
                          readings()->now->pass.layers[made->layer] == made->run;
  return is_of_last ? made : nullptr;
}

void WholeReading::follow_effects(const WholeModel& whole, const LayersLook& look,
                                  std::size_t selected_head) {
  const Prediction* next = prediction();
  if (!next || next->guesses.empty() || !is_of(whole)) return;
  effects_.follow(whole.transformer, {readings()->now, next->chosen.id, look.temperature},
                  {whole.layer, selected_head}, pool_);
}

bool WholeReading::is_busy() const {
  return readings_.is_busy() || prediction_.is_busy() || layer_.is_busy() || stream_.is_busy() ||
         usual_.is_busy() || effects_.is_busy();
}

bool WholeReading::is_behind(const WholeModel& whole) const {
  return !is_of(whole) || prediction_.is_busy() || layer_.is_busy();
}

}  // namespace app
