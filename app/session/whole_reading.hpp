#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/session/head_effects.hpp"
#include "app/session/slot.hpp"
#include "app/session/whole_model.hpp"
#include "core/base/thread_pool.hpp"
#include "core/graph/address.hpp"
#include "core/model/prediction.hpp"
#include "core/model/stream.hpp"

namespace app {

/// A text as a whole model reads it, with what was edited and without.
struct BothReadings {
  std::shared_ptr<const core::experiment::Reading> now, before;
  double ms = 0;  ///< that reading it with what was edited took
};

using core::experiment::LayerGuess;
using core::experiment::NextToken;
using core::experiment::Prediction;

/// The layer that is looked at as the pass gives it.
struct LayerMade {
  std::optional<core::attention::Model> model;  ///< nothing: the numbers are those that it has
  std::shared_ptr<const core::transformer::LayerRun> run;
  std::size_t layer = 0;
};

/// All that is worked out of a whole model and a text: beside the window, unless it is quick.
class WholeReading {
 public:
  /// What a reading follows from.
  struct Key {
    const void* weights = nullptr;
    core::experiment::Experiment experiment;
    bool is_near(const Key& newest) const {
      return weights == newest.weights && experiment.text == newest.experiment.text &&
             experiment.made == newest.experiment.made;
    }
    friend bool operator==(const Key&, const Key&) = default;
  };
  /// Readings, and what they are of.
  struct Kept {
    Key key;
    BothReadings readings;
  };

  explicit WholeReading(Jobs& jobs);

  /// What was worked out of a model when it was opened.
  void begin_with(const WholeModel& whole, BothReadings readings);
  /// Goes after what is to be seen of a model: the effect of a head, and the way of a pinned cell through the
  /// residual stream. Once a frame.
  void follow(const WholeModel& whole, const LayersLook& look, std::size_t selected_head,
              const std::optional<core::explain::CellAddress>& pinned);
  /// Nothing is open any longer.
  void clear();
  /// The last readings, to be put back when their model is; nothing before the first.
  std::optional<Kept> kept() const;
  void put_back(Kept kept);
  /// Begins to switch every head off in its turn.
  void sweep() { effects_.sweep(); }

  /// The last readings, or nullptr; whether they are of that experiment.
  const BothReadings* readings() const { return readings_.value(); }
  bool is_of(const WholeModel& whole) const;
  /// Whether that text could not be read.
  bool has_failed(const WholeModel& whole) const { return readings_.has_failed(key_of(whole)); }
  /// Of the last reading.
  const Prediction* prediction() const { return prediction_.value(); }
  /// Another number: another map of that layer.
  std::uint64_t version_of(std::size_t layer) const;
  /// The wanted layer of the last readings where it is another than the one that the model has, or nullptr.
  const LayerMade* layer() const;
  /// The number of the residual stream that a cell of the inputs or the output of a layer stands in, where
  /// that is known.
  const core::experiment::StreamNumber* stream(const WholeModel& whole,
                                               const core::explain::CellAddress& cell) const;
  /// What switching heads off does to the chosen token, as far as that is known.
  const HeadEffects& effects() const { return effects_; }
  /// What every head does on random tokens that come again, [layer][head]; nullptr while that is measured,
  /// empty where it cannot be.
  const std::vector<std::vector<core::transformer::HeadRoles>>* usual() const { return usual_.value(); }

  bool is_busy() const;
  /// Whether anything that the window shows of a model is of an older text, or of older edits.
  bool is_behind(const WholeModel& whole) const;

 private:
  using Reading = std::shared_ptr<const core::experiment::Reading>;
  struct PredictionKey {
    Reading now, before;
    std::optional<std::size_t> token;
    double temperature = 1;
    bool is_near(const PredictionKey&) const { return true; }
    friend bool operator==(const PredictionKey&, const PredictionKey&) = default;
  };
  struct LayerKey {
    std::shared_ptr<const core::transformer::LayerRun> run;
    std::size_t layer = 0;
    bool is_near(const LayerKey& newest) const { return *this == newest; }
    friend bool operator==(const LayerKey&, const LayerKey&) = default;
  };
  struct StreamKey {
    std::shared_ptr<const core::transformer::LayerRun> run;
    std::size_t layer = 0, row = 0, column = 0;
    bool is_near(const StreamKey& newest) const { return *this == newest; }
    friend bool operator==(const StreamKey&, const StreamKey&) = default;
  };
  struct UsualKey {
    const void* weights = nullptr;
    bool is_near(const UsualKey& newest) const { return *this == newest; }
    friend bool operator==(const UsualKey&, const UsualKey&) = default;
  };
  static Key key_of(const WholeModel& whole);
  static std::optional<StreamKey> stream_key(const WholeModel& whole, const core::explain::CellAddress& cell);
  void follow_usual(const WholeModel& whole);
  void follow_text(const WholeModel& whole);
  void follow_prediction(const WholeModel& whole, const LayersLook& look);
  void follow_layer(const WholeModel& whole);
  void follow_stream(const WholeModel& whole, const std::optional<core::explain::CellAddress>& pinned);
  void follow_effects(const WholeModel& whole, const LayersLook& look, std::size_t selected_head);
  void number_maps();

  Jobs& jobs_;
  std::shared_ptr<core::ThreadPool> pool_;
  Slot<Key, BothReadings> readings_;
  Slot<PredictionKey, Prediction> prediction_;
  Slot<LayerKey, LayerMade> layer_;
  Slot<StreamKey, core::experiment::StreamNumber> stream_;
  Slot<UsualKey, std::vector<std::vector<core::transformer::HeadRoles>>> usual_;
  std::vector<std::shared_ptr<const core::experiment::LayerSight>> numbered_;
  std::vector<std::uint64_t> versions_;  // [layer]
  std::uint64_t last_version_ = 0;
  HeadEffects effects_;
};

}  // namespace app
