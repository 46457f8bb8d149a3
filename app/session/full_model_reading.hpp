#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "app/session/document.hpp"
#include "app/session/jobs.hpp"
#include "app/session/live_circuits.hpp"
#include "app/session/live_patches.hpp"
#include "app/session/live_scan.hpp"
#include "app/session/live_sources.hpp"
#include "core/base/thread_pool.hpp"
#include "core/graph/address.hpp"

namespace app {

using core::experiment::AblationEffect;
using core::experiment::LensReading;
using core::experiment::LensToken;
using core::experiment::NextToken;
using core::experiment::Prediction;

/// The pass and the next token of ablation effects.
struct EffectsKey {
  core::transformer::PassRef pass;  ///< of readings that differ only in the heads that are known
  std::size_t token = 0;
  double temperature = 1;
  friend bool operator==(const EffectsKey&, const EffectsKey&) = default;
};

/// Ablates heads, one after the other, in the background.
class HeadEffects {
 public:
  using HeadIndex = std::pair<std::size_t, std::size_t>;  ///< layer and number

  explicit HeadEffects(Jobs& jobs) : portions_(jobs) {}

  /// Requests the effect of one head, and those of all heads during a sweep, on a reading of the key's pass;
  /// drops effects of another key. Once a frame.
  void follow(const core::transformer::ModelRef& model, const ReadingRef& reading, const EffectsKey& key,
              HeadIndex wanted, const std::shared_ptr<core::ThreadPool>& pool);
  /// Begins to ablate every head in turn; ends after the last one, or when one cannot be ablated.
  void sweep() { found_.sweeps = true; }
  void stop() { found_.sweeps = false; }
  /// Drops all effects.
  void clear();

  std::optional<AblationEffect> of(HeadIndex head) const;
  std::size_t n_known() const { return found_.effects.size(); }
  double largest() const { return found_.largest; }  ///< absolute change of the logit
  bool is_sweeping() const { return found_.sweeps; }
  bool is_busy() const { return portions_.is_busy() || found_.sweeps; }

 private:
  /// The effects of one key.
  struct KnownEffects {
    std::optional<EffectsKey> of;
    std::map<HeadIndex, AblationEffect> effects;
    double largest = 0;
    bool sweeps = false, has_failed = false;
  };
  std::vector<HeadIndex> missing(const core::experiment::TextReading& reading, HeadIndex wanted) const;

  struct PortionKey {
    EffectsKey of;
    std::vector<HeadIndex> heads;
    bool is_compatible(const PortionKey& newest) const { return of == newest.of; }
    friend bool operator==(const PortionKey&, const PortionKey&) = default;
  };

  KnownEffects found_;
  AsyncValue<PortionKey, std::vector<std::pair<HeadIndex, AblationEffect>>> portions_;
};

/// The readings of a text with the edits and without.
struct BothReadings {
  ReadingRef now, before;
  double ms = 0;  ///< of the reading with edits
};

/// Returns how the text with the edits is aligned with the other, the first of two prompts.
core::transformer::TokenAlignment alignment_of(const BothReadings& both);

/// The displayed layer as computed by the pass.
struct ComputedLayer {
  std::optional<core::attention::Model> model;  ///< nothing: its numbers are the same as before
  std::shared_ptr<const void> computation_id;
  std::size_t layer = 0;
};

/// Everything computed for a whole model and a text: in the background, unless it is quick.
class FullModelReading {
 public:
  /// What a reading depends on.
  struct ReadingKey {
    const void* model = nullptr;
    core::experiment::Experiment experiment;
    std::uint64_t state = 0;  ///< of the model's parameters
    bool is_compatible(const ReadingKey& newest) const {
      return model == newest.model && experiment.text == newest.experiment.text &&
             experiment.made == newest.experiment.made;
    }
    friend bool operator==(const ReadingKey&, const ReadingKey&) = default;
  };
  /// Readings and their key.
  struct SavedReadings {
    ReadingKey key;
    BothReadings readings;
  };

  explicit FullModelReading(Jobs& jobs);

  /// Takes the readings of a model that was opened.
  void set_readings(const FullModelState& full_model, BothReadings readings);
  /// Requests the displayed parts of a model: the effect of a head, and a pinned cell in the residual stream;
  /// after a gesture the process of an attached model is told the edits. Once a frame.
  void follow(const FullModelState& full_model, const LayersLook& look, std::size_t selected_head,
              const std::optional<core::explain::CellAddress>& pinned, bool is_in_gesture);
  /// Requests the scan of a form, and reads what its folder has. Once a frame.
  void follow_scan(const FullModelState& full_model, const ScanForm& form) { scan_.follow(full_model, form); }
  /// Drops everything.
  void clear();
  /// Returns the last readings, for restore_readings() together with their model; nothing before the first.
  std::optional<SavedReadings> saved_readings() const;
  void restore_readings(SavedReadings kept);
  /// Begins to ablate every head in turn.
  void sweep() { effects_.sweep(); }
  void stop_sweep() { effects_.stop(); }

  /// Return the last readings, or nullptr; and whether they are of that experiment.
  const BothReadings* readings() const { return readings_.value(); }
  bool matches(const FullModelState& full_model) const;
  /// Whether reading that text has failed.
  bool has_failed(const FullModelState& full_model) const { return readings_.has_failed(key_of(full_model)); }
  /// Returns the prediction of the last reading, or nullptr.
  const Prediction* prediction() const { return prediction_.value(); }
  /// Returns what the chosen lens predicts, or nullptr where it is the logit lens after layers, which is part
  /// of the prediction, or while it is unknown.
  const LensReading* lens(core::transformer::LensKind kind) const {
    return lens_.key() && lens_.key()->kind == kind ? lens_.value() : nullptr;
  }
  /// Returns a number that changes with the maps of a layer.
  std::uint64_t version_of(std::size_t layer) const;
  /// Returns the requested layer of the last readings where the document's differs from it, or nullptr.
  const ComputedLayer* layer() const;
  /// Returns the residual stream at a cell of a layer's input or output, or nullptr while it is unknown.
  const core::transformer::ResidualElement* stream(const FullModelState& full_model,
                                                   const core::explain::CellAddress& cell) const;
  /// Returns the sources of a score or a weight, or nullptr while they are unknown or where there are none.
  const core::circuits::ScoreSources* sources(const FullModelState& full_model,
                                              const core::explain::CellAddress& cell) const {
    return readings() ? sources_.of(full_model, readings()->now, cell) : nullptr;
  }
  /// Return the watched logit difference of two prompts, or nullptr; and the maps of patches between them.
  const core::experiment::WatchedDifference* watched() const { return watched_.value(); }
  const LivePatches& patches() const { return patches_; }
  const LiveScan& scan() const { return scan_; }
  const core::circuits::WrittenSum* sum_of_sources(const FullModelState& full_model,
                                                   const core::explain::CellAddress& cell) const {
    return readings() ? sources_.sum_of(full_model, readings()->now, cell) : nullptr;
  }
  const LiveCircuits& circuits() const { return circuits_; }
  /// Returns the ablation effects on the chosen token that are known so far.
  const HeadEffects& effects() const { return effects_; }
  /// Returns the roles of every head on random repeated tokens, [layer][head]; nullptr while they are
  /// measured, empty where they cannot be.
  const std::vector<std::vector<core::transformer::HeadRoles>>* random_roles() const {
    const bool is_of_readings =
        random_roles_.key() && readings_.key() && random_roles_.key()->state == readings_.key()->state;
    return is_of_readings ? random_roles_.value() : nullptr;
  }

  bool is_busy() const;
  /// Whether anything displayed belongs to an older text or to older edits.
  bool is_behind(const FullModelState& full_model) const;

 private:
  struct PredictionKey {
    core::transformer::PassRef now, before;
    std::optional<std::size_t> token;
    double temperature = 1;
    bool is_compatible(const PredictionKey&) const { return true; }
    friend bool operator==(const PredictionKey&, const PredictionKey&) = default;
  };
  struct LensKey {
    core::transformer::PassRef pass;
    std::size_t token = 0;
    double temperature = 1;
    core::transformer::LensKind kind{};
    bool is_compatible(const LensKey& other) const { return kind == other.kind; }
    friend bool operator==(const LensKey&, const LensKey&) = default;
  };
  struct WatchedKey {
    core::transformer::PassRef now, before;
    core::experiment::FirstPrompt answers;
    friend bool operator==(const WatchedKey&, const WatchedKey&) = default;
  };
  struct LayerKey {
    std::shared_ptr<const void> computation_id;
    std::size_t layer = 0;
    friend bool operator==(const LayerKey&, const LayerKey&) = default;
  };
  struct StreamKey {
    std::shared_ptr<const void> computation_id;
    std::size_t layer = 0, row = 0, column = 0;
    friend bool operator==(const StreamKey&, const StreamKey&) = default;
  };
  /// Readings with heads that are not known yet, as of an attached model whose maps are slow.
  struct FillKey {
    ReadingRef now, before;
    friend bool operator==(const FillKey&, const FillKey&) = default;
  };
  struct RandomKey {
    const void* model = nullptr;
    std::uint64_t state = 0;
    friend bool operator==(const RandomKey&, const RandomKey&) = default;
  };
  static ReadingKey key_of(const FullModelState& full_model);
  static std::optional<StreamKey> stream_key(const FullModelState& full_model,
                                             const core::explain::CellAddress& cell);
  void follow_random_roles(const FullModelState& full_model);
  void follow_text(const FullModelState& full_model);
  void publish_edits(const FullModelState& full_model);
  void follow_heads(const FullModelState& full_model);
  void follow_prediction(const FullModelState& full_model, const LayersLook& look);
  void follow_lens(const FullModelState& full_model, const LayersLook& look);
  void follow_prompts(const FullModelState& full_model, const PatchesLook& look);
  void follow_layer(const FullModelState& full_model);
  void follow_stream(const FullModelState& full_model,
                     const std::optional<core::explain::CellAddress>& pinned);
  void follow_effects(const FullModelState& full_model, const LayersLook& look, std::size_t selected_head);
  void update_map_versions();

  Jobs& jobs_;
  std::shared_ptr<core::ThreadPool> pool_;
  AsyncValue<ReadingKey, BothReadings> readings_;
  AsyncValue<FillKey, BothReadings> filled_;
  AsyncValue<core::transformer::PassRef, bool> published_;
  AsyncValue<PredictionKey, Prediction> prediction_;
  AsyncValue<LensKey, LensReading> lens_;
  AsyncValue<LayerKey, ComputedLayer> layer_;
  AsyncValue<StreamKey, core::transformer::ResidualElement> stream_;
  AsyncValue<RandomKey, std::vector<std::vector<core::transformer::HeadRoles>>> random_roles_;
  LiveSources sources_;
  AsyncValue<WatchedKey, core::experiment::WatchedDifference> watched_;
  LivePatches patches_;
  LiveScan scan_;
  LiveCircuits circuits_;
  std::vector<std::shared_ptr<const core::transformer::LayerHeads>> numbered_;
  std::optional<core::experiment::FirstPrompt> numbered_first_;
  std::vector<std::uint64_t> versions_;  // [layer]
  std::uint64_t last_version_ = 0;
  HeadEffects effects_;
};

}  // namespace app
