#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "app/session/document.hpp"
#include "app/session/jobs.hpp"
#include "core/base/thread_pool.hpp"
#include "core/circuits/patching.hpp"
#include "core/out/tables.hpp"

namespace app {

/// Maps of what patches between two prompts recover, in the background, one after the other: the selected
/// one, and for small models those of heads, MLPs and the residual stream.
class LivePatches {
 public:
  explicit LivePatches(Jobs& jobs) : maps_{{Map(jobs), Map(jobs), Map(jobs), Map(jobs)}} {}

  /// Requests the maps of two prompts without edits, or stops. Once a frame.
  void follow(const FullModelState& full_model, const ReadingRef& now, const ReadingRef& before,
              const core::experiment::WatchedDifference* watched, const PatchesLook& look);
  void clear();

  /// Returns a map as far as it is computed, or nullptr.
  const core::circuits::PatchMap* of(const core::circuits::PatchPlan& plan) const;
  /// Returns why there are no maps, or "".
  const std::string& error() const { return error_; }
  /// Returns how many patches of all maps are known, and wanted.
  std::pair<std::size_t, std::size_t> progress() const;
  bool is_busy() const;

 private:
  struct Key {
    core::transformer::ModelRef model;
    core::circuits::PromptPair prompts;
    core::circuits::PatchPlan plan;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct MapResult {
    core::circuits::PatchMap map;
    std::string error;
  };
  /// A map that another thread is computing.
  struct Growing {
    std::mutex mutex;
    core::circuits::PatchMap map;
  };
  struct Map {
    explicit Map(Jobs& jobs) : result(jobs) {}
    AsyncValue<Key, MapResult> result;
    std::optional<Key> wanted;
    std::shared_ptr<Growing> growing;
    core::circuits::PatchMap known;  ///< as far as it is computed
  };
  void follow(Map& map, const core::experiment::Experiment& both, bool begins);

  std::shared_ptr<core::ThreadPool> pool_;
  std::array<Map, 4> maps_;
  std::string error_;
};

/// Returns the map that is selected.
core::circuits::PatchPlan plan_of(const PatchesLook& look);

/// Returns the patch of the selected head, layer and position of an open whole model.
core::transformer::Patch selected_patch(const Pending& now);

/// Returns a map with the names of its rows, and the numbers of heads or positions above its columns.
core::formats::LabeledMatrix labeled(const core::circuits::PatchMap& map);

}  // namespace app
