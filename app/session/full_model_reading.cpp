#include "app/session/full_model_reading.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "core/base/utf8.hpp"
#include "core/out/experiment_program.hpp"

namespace app {
namespace {

namespace experiment = core::experiment;
namespace transformer = core::transformer;

constexpr auto between_deliveries = std::chrono::milliseconds(60);
constexpr double unnoticed_ms = 100;            // for maps that the user waits for
constexpr std::size_t quick_logits = 100'000;   // computed within a frame
constexpr std::size_t quick_numbers = 500'000;  // of a layer's projections, within a frame

/// Whether a layer was made from this input and the tokens of this reading.
bool has_input(const core::attention::Model& unedited, const experiment::TextReading& reading,
               const arma::fmat& input) {
  const core::attention::Sequence& sequence = unedited.sequences.front();
  const arma::mat& made_of = sequence.embeddings;
  if (sequence.tokens != reading.names || made_of.n_rows != input.n_rows || made_of.n_cols != input.n_cols)
    return false;
  return std::equal(made_of.begin(), made_of.end(), input.begin(),
                    [](double a, float b) { return a == static_cast<double>(b); });
}

/// Reads the text with and without edits; last_now and last_before are the previous readings, or nullptr.
BothReadings read_both(const transformer::FullModel& model, const experiment::Experiment& wanted,
                       const ReadingRef& last_now, const ReadingRef& last_before, const Jobs& jobs,
                       const transformer::CallContext& context, std::optional<std::size_t> only_layer) {
  const auto read = [&](const experiment::Experiment& what, const experiment::TextReading* nearest) {
    return ReadingRef(jobs.with_async_deleter(std::make_unique<experiment::TextReading>(
        experiment::read(model, what, nearest, context, only_layer))));
  };
  const experiment::Experiment plain = wanted.unedited();
  BothReadings both;
  const bool is_known =
      last_before && last_before->experiment == plain && last_before->pass->state() == model.state();
  both.before = is_known ? last_before : read(plain, last_before.get());
  both.now = both.before;
  if (wanted == plain) return both;
  const auto start = Clock::now();
  const bool is_compatible =
      last_now && last_now->experiment.text == wanted.text && last_now->experiment.made == wanted.made;
  both.now = read(wanted, is_compatible ? last_now.get() : both.before.get());
  both.ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  if (both.before->pass->state() != both.now->pass->state()) both.before = read(plain, nullptr);
  return both;
}

/// Returns the edits of a reading as code, or as a comment why there is none.
std::string program_of_edits(const transformer::FullModel& model, const experiment::TextReading& reading) {
  constexpr std::size_t max_program = std::size_t{1} << 19;  // bytes, so that it fits the header of a frame
  std::string program;
  try {
    if (reading.experiment.is_edited())
      program = core::formats::experiment_program_text(
          model, reading.experiment, {.title = model.description().path.string(), .has_own_model = false},
          reading.pass.get());
    if (program.size() > max_program)
      program = "# The edits are too long for this; the window exports them.\n";
  } catch (const core::Stopped&) {
    throw;
  } catch (const core::Error& error) {
    program = "# " + core::text::printable(error.what()) + "\n";
  }
  return program;
}

/// Returns readings with the heads of more layers, of this one first, after about unnoticed_ms.
BothReadings with_more_heads(const transformer::FullModel& model, const BothReadings& last, std::size_t layer,
                             const Jobs& jobs, const transformer::CallContext& context) {
  auto now = std::make_unique<experiment::TextReading>(*last.now),
       before = std::make_unique<experiment::TextReading>(*last.before);
  const auto begin = Clock::now();
  do {
    experiment::fill(model, now->is_filled() ? *before : *now, layer, context);
    for (std::size_t l = 0; l < now->layers.size(); ++l)
      if (now->pass->computation_id(l) == before->pass->computation_id(l) && !before->layers[l]->is_known())
        before->layers[l] = now->layers[l];
  } while (!(now->is_filled() && before->is_filled()) && !context.progress.is_due() &&
           std::chrono::duration<double, std::milli>(Clock::now() - begin).count() < unnoticed_ms);
  BothReadings both{.now = jobs.with_async_deleter(std::move(now)), .before = nullptr, .ms = last.ms};
  both.before = last.now == last.before ? both.now : jobs.with_async_deleter(std::move(before));
  return both;
}

}  // namespace

std::vector<HeadEffects::HeadIndex> HeadEffects::missing(const experiment::TextReading& reading,
                                                         HeadIndex wanted) const {
  std::vector<HeadIndex> heads;
  const auto want = [&](HeadIndex head) {
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

void HeadEffects::follow(const core::transformer::ModelRef& model, const ReadingRef& reading,
                         const EffectsKey& key, HeadIndex wanted,
                         const std::shared_ptr<core::ThreadPool>& pool) {
  if (found_.of != key) {
    const bool sweeps = !found_.of && found_.sweeps;  // else the sweep was of another token or text
    clear();
    found_.sweeps = sweeps;
    found_.of = key;
  }
  if (const auto portion = portions_.take())
    for (const auto& [head, effect] : *portion) {
      found_.effects[head] = effect;
      found_.largest = std::max(found_.largest, std::abs(effect.logit_change));
    }
  const std::vector<HeadIndex> heads =
      found_.has_failed ? std::vector<HeadIndex>() : missing(*reading, wanted);
  if (heads.empty()) {
    found_.sweeps = false;
    return;
  }
  const PortionKey next{key, heads};
  if (portions_.needs(next))
    portions_.begin(next, Schedule::background, [next, model, reading, pool](const core::StopToken& token) {
      const auto begin = Clock::now();
      std::vector<std::pair<HeadIndex, AblationEffect>> found;
      for (const HeadIndex& head : next.heads) {
        found.emplace_back(head, experiment::ablation_effect(*model, *reading, head, next.of.token,
                                                             next.of.temperature, {*pool, token}));
        if (Clock::now() - begin > between_deliveries || token.is_due()) break;
      }
      return found;
    });
  found_.has_failed = portions_.has_failed(next);
}

void HeadEffects::clear() {
  portions_.clear();
  found_ = {};
}

std::optional<AblationEffect> HeadEffects::of(HeadIndex head) const {
  const auto known = found_.effects.find(head);
  return known == found_.effects.end() ? std::nullopt : std::optional(known->second);
}

FullModelReading::FullModelReading(Jobs& jobs)
    : jobs_(jobs),
      readings_(jobs),
      filled_(jobs),
      published_(jobs),
      prediction_(jobs),
      lens_(jobs),
      layer_(jobs),
      stream_(jobs),
      random_roles_(jobs),
      sources_(jobs),
      watched_(jobs),
      patches_(jobs),
      scan_(jobs),
      circuits_(jobs),
      effects_(jobs) {}

FullModelReading::ReadingKey FullModelReading::key_of(const FullModelState& full_model) {
  ReadingKey key{full_model.model.get(), full_model.experiment, full_model.model->state()};
  key.experiment.layer = 0;
  return key;
}

bool FullModelReading::matches(const FullModelState& full_model) const {
  return readings_.matches(key_of(full_model));
}

void FullModelReading::set_readings(const FullModelState& full_model, BothReadings readings) {
  clear();
  readings_.put(key_of(full_model), std::move(readings));
  if (!pool_) pool_ = std::make_shared<core::ThreadPool>();
}

std::optional<FullModelReading::SavedReadings> FullModelReading::saved_readings() const {
  if (!readings_.value()) return std::nullopt;
  return SavedReadings{*readings_.key(), *readings_.value()};
}

void FullModelReading::restore_readings(SavedReadings kept) {
  clear();
  readings_.put(kept.key, std::move(kept.readings));
}

void FullModelReading::clear() {
  readings_.clear(), filled_.clear(), published_.clear(), prediction_.clear(), lens_.clear(), layer_.clear(),
      stream_.clear(), random_roles_.clear(), sources_.clear(), watched_.clear(), patches_.clear(),
      scan_.clear(), circuits_.clear();
  effects_.clear();
  numbered_.clear();
}

void FullModelReading::follow(const FullModelState& full_model, const LayersLook& look,
                              std::size_t selected_head,
                              const std::optional<core::explain::CellAddress>& pinned, bool is_in_gesture) {
  // Nothing may be computed from readings of another model.
  if (readings() && readings_.key()->model != full_model.model.get()) clear();
  follow_text(full_model);
  if (!readings()) return;
  if (full_model.model->description().is_attached && !is_in_gesture && matches(full_model))
    publish_edits(full_model);
  follow_heads(full_model);
  update_map_versions();
  follow_random_roles(full_model);
  follow_prediction(full_model, look);
  follow_lens(full_model, look);
  follow_prompts(full_model, look.patches);
  follow_layer(full_model);
  follow_stream(full_model, pinned);
  sources_.follow(full_model, readings()->now, look.shows_sources ? pinned : std::nullopt, pool_);
  circuits_.follow(
      full_model, readings()->now,
      prediction() && !prediction()->lens.empty() ? std::optional(prediction()->chosen.id) : std::nullopt,
      selected_head, look.shows_circuits, pool_);
  follow_effects(full_model, look, selected_head);
}

void FullModelReading::follow_text(const FullModelState& full_model) {
  const ReadingKey key = key_of(full_model);
  if (!readings_.needs(key)) return;
  const BothReadings* last = readings();
  const auto& of = full_model.model->description();
  std::optional<std::size_t> only_layer;
  if (of.is_attached && last && last->now->maps_ms * static_cast<double>(of.sizes.n_layers) > unnoticed_ms)
    only_layer = full_model.experiment.layer;
  readings_.begin(key, Schedule::background,
                  [model = full_model.model, wanted = key.experiment, now = last ? last->now : nullptr,
                   before = last ? last->before : nullptr, only_layer, pool = pool_,
                   &jobs = jobs_](const core::StopToken& token) {
                    return read_both(*model, wanted, now, before, jobs, {*pool, token}, only_layer);
                  });
}

void FullModelReading::publish_edits(const FullModelState& full_model) {
  const ReadingRef now = readings()->now;
  if (!published_.needs(now->pass)) return;
  published_.begin(now->pass, Schedule::background, [now, model = full_model.model](const core::StopToken&) {
    model->publish(program_of_edits(*model, *now));
    return true;
  });
}

void FullModelReading::follow_heads(const FullModelState& full_model) {
  if (readings_.is_busy()) return filled_.cancel();
  const BothReadings& last = *readings();
  const FillKey key{last.now, last.before};
  if (filled_.matches(key)) {
    const ReadingKey of = *readings_.key();
    return readings_.put(of, *filled_.take());
  }
  if ((key.now->is_filled() && key.before->is_filled()) || !filled_.needs(key)) return;
  filled_.begin(key, Schedule::background,
                [last, layer = full_model.experiment.layer, model = full_model.model, pool = pool_,
                 &jobs = jobs_](const core::StopToken& token) {
                  return with_more_heads(*model, last, layer, jobs, {*pool, token});
                });
}

void FullModelReading::follow_random_roles(const FullModelState& full_model) {
  const RandomKey key{full_model.model.get(), full_model.model->state()};
  // An attached model answers requests in order, so this waits until no other is pending.
  if (full_model.model->description().is_attached &&
      (readings_.is_busy() || filled_.is_busy() || prediction_.is_busy()))
    return;
  if (!random_roles_.needs(key)) return;
  random_roles_.begin(key, Schedule::background,
                      [model = full_model.model, pool = pool_](const core::StopToken& token) {
                        return experiment::roles_on_random_tokens(*model, {*pool, token});
                      });
}

void FullModelReading::update_map_versions() {
  const auto& layers = readings()->now->layers;
  numbered_.resize(layers.size());
  versions_.resize(layers.size());
  const auto& first = readings()->now->experiment.first;  // whose maps are compared
  const bool is_another = std::exchange(numbered_first_, first) != first;
  for (std::size_t l = 0; l < layers.size(); ++l)
    if (std::exchange(numbered_[l], layers[l]) != layers[l] || is_another) versions_[l] = ++last_version_;
}

core::transformer::TokenAlignment alignment_of(const BothReadings& both) {
  const auto& first = both.now->experiment.first;
  return core::transformer::align(both.before->pass->ids, both.now->pass->ids,
                                  first ? first->aligned : std::vector<core::experiment::IndexPair>());
}

std::uint64_t FullModelReading::version_of(std::size_t layer) const {
  return layer < versions_.size() ? versions_[layer] : 0;
}

void FullModelReading::follow_prediction(const FullModelState& full_model, const LayersLook& look) {
  const BothReadings& both = *readings();
  const PredictionKey key{both.now->pass, both.before->pass, look.token, look.shown_temperature()};
  const bool is_quick =
      !full_model.model->description().is_attached && both.now->logits.n_elem <= quick_logits;
  const Schedule when = is_quick ? Schedule::immediate : Schedule::background;
  if (!prediction_.needs(key, when)) return;
  prediction_.begin(key, when,
                    [key, both, model = full_model.model, pool = pool_](const core::StopToken& token) {
                      return experiment::predict_next(*model, *both.now, *both.before, key.token,
                                                      key.temperature, {*pool, token});
                    });
}

void FullModelReading::follow_lens(const FullModelState& full_model, const LayersLook& look) {
  const Prediction* next = prediction();
  if (!next || next->lens.empty() || look.lens == transformer::LensKind::logit) return lens_.clear();
  const ReadingRef now = readings()->now;
  const LensKey key{now->pass, next->chosen.id, look.shown_temperature(), look.lens};
  if (!lens_.needs(key)) return;
  lens_.begin(
      key, Schedule::background,
      [key, now, model = full_model.model, pool = pool_](const core::StopToken& token) {
        return experiment::read_lens(*model, *now, key.kind, key.token, key.temperature, {*pool, token});
      });
}

void FullModelReading::follow_prompts(const FullModelState& full_model, const PatchesLook& look) {
  const auto& first = full_model.experiment.first;
  const BothReadings both = *readings();
  const WatchedKey key{both.now->pass, both.before->pass, first.value_or(core::experiment::FirstPrompt())};
  if (!first || !matches(full_model)) {
    if (!first) watched_.clear();
  } else if (watched_.needs(key)) {
    watched_.begin(key, Schedule::background, [both, model = full_model.model](const core::StopToken&) {
      return experiment::watched_difference(*model, *both.now, *both.before);
    });
  }
  if (matches(full_model) && (!first || watched_.matches(key)))
    patches_.follow(full_model, both.now, both.before, watched(), look);
}

void FullModelReading::follow_layer(const FullModelState& full_model) {
  const ReadingRef now = readings()->now;
  const std::size_t layer = std::min(full_model.experiment.layer, now->layers.size() - 1);
  const LayerKey key{now->pass->computation_id(layer), layer};
  if (full_model.layer == layer && full_model.computation_id == key.computation_id) return;
  const auto& of = full_model.model->description();
  if (!of.is_attached && full_model.layer == layer && full_model.unedited.given.cells.empty() &&
      !now->experiment.has_patched_attention(layer) &&
      has_input(full_model.unedited, *now, full_model.model->input(*now->pass, layer))) {
    if (layer_.needs(key, Schedule::immediate))
      layer_.begin(key, Schedule::immediate, [key](const core::StopToken&) {
        return ComputedLayer{std::nullopt, key.computation_id, key.layer};
      });
    return;
  }
  const bool is_quick = !of.is_attached && of.sizes.d_model * of.sizes.d_model * 4 <= quick_numbers;
  const Schedule when = is_quick ? Schedule::immediate : Schedule::background;
  if (!layer_.needs(key, when)) return;
  layer_.begin(key, when, [key, now, model = full_model.model](const core::StopToken& token) {
    return ComputedLayer{experiment::unedited_layer(*model, *now, key.layer, token), key.computation_id,
                         key.layer};
  });
}

std::optional<FullModelReading::StreamKey> FullModelReading::stream_key(
    const FullModelState& full_model, const core::explain::CellAddress& cell) {
  using core::attention::Stage;
  if ((cell.stage != Stage::embeddings && cell.stage != Stage::output) || !full_model.computation_id)
    return std::nullopt;
  if (cell.row >= full_model.unedited.n_tokens() ||
      cell.column >= full_model.model->description().sizes.d_model)
    return std::nullopt;
  return StreamKey{full_model.computation_id, full_model.layer, cell.row, cell.column};
}

void FullModelReading::follow_stream(const FullModelState& full_model,
                                     const std::optional<core::explain::CellAddress>& pinned) {
  const ReadingRef now = readings()->now;
  const auto key = pinned ? stream_key(full_model, *pinned) : std::nullopt;
  if (!key || now->pass->computation_id(key->layer) != key->computation_id || !stream_.needs(*key)) return;
  stream_.begin(*key, Schedule::background,
                [key = *key, now, model = full_model.model, pool = pool_](const core::StopToken& token) {
                  return model->stream(*now->pass, key.layer, key.row, key.column, {*pool, token});
                });
}

const core::transformer::ResidualElement* FullModelReading::stream(
    const FullModelState& full_model, const core::explain::CellAddress& cell) const {
  const auto key = stream_key(full_model, cell);
  return key && stream_.matches(*key) ? stream_.value() : nullptr;
}

const ComputedLayer* FullModelReading::layer() const {
  const ComputedLayer* made = layer_.value();
  const bool is_of_last = made && readings() && made->layer < readings()->now->layers.size() &&
                          readings()->now->pass->computation_id(made->layer) == made->computation_id;
  return is_of_last ? made : nullptr;
}

void FullModelReading::follow_effects(const FullModelState& full_model, const LayersLook& look,
                                      std::size_t selected_head) {
  const Prediction* next = prediction();
  if (!next || next->lens.empty() || !matches(full_model)) return;
  const ReadingRef& now = readings()->now;
  effects_.follow(full_model.model, now, {now->pass, next->chosen.id, look.shown_temperature()},
                  {full_model.layer, selected_head}, pool_);
}

bool FullModelReading::is_busy() const {
  return readings_.is_busy() || filled_.is_busy() || published_.is_busy() || prediction_.is_busy() ||
         lens_.is_busy() || layer_.is_busy() || stream_.is_busy() || random_roles_.is_busy() ||
         sources_.is_busy() || watched_.is_busy() || patches_.is_busy() || scan_.is_busy() ||
         circuits_.is_busy() || effects_.is_busy();
}

bool FullModelReading::is_behind(const FullModelState& full_model) const {
  return !matches(full_model) || prediction_.is_busy() || layer_.is_busy();
}

}  // namespace app
