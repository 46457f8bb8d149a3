#pragma once

#include <memory>
#include <optional>
#include <string>

#include "app/session/document.hpp"
#include "app/session/jobs.hpp"
#include "core/base/thread_pool.hpp"
#include "core/circuits/sources.hpp"
#include "core/graph/address.hpp"

namespace app {

/// Sources of a score of a whole model, in the background: the direct sum first, then the totals.
class LiveSources {
 public:
  explicit LiveSources(Jobs& jobs) : direct_(jobs), complete_(jobs) {}

  /// Requests the sources of a cell of a reading, or stops. Once a frame.
  void follow(const FullModelState& full_model, const ReadingRef& reading,
              const std::optional<core::explain::CellAddress>& cell,
              const std::shared_ptr<core::ThreadPool>& pool);
  void clear() { direct_.clear(), complete_.clear(); }

  /// Returns the sources of a cell, with the names of parts alone while totals are being computed; or
  /// nullptr.
  const core::circuits::ScoreSources* of(const FullModelState& full_model, const ReadingRef& reading,
                                         const core::explain::CellAddress& cell) const;
  bool is_busy() const { return direct_.is_busy() || complete_.is_busy(); }

 private:
  struct Key {
    core::transformer::PassRef pass;
    core::circuits::ScoreCell cell;
    friend bool operator==(const Key&, const Key&) = default;
  };
  static std::optional<Key> key_of(const FullModelState& full_model, const ReadingRef& reading,
                                   const core::explain::CellAddress& cell);

  AsyncValue<Key, core::circuits::ScoreSources> direct_, complete_;
};

/// Returns whether a cell is a score or a weight, so that it may have sources.
bool is_score(const core::explain::CellAddress& cell);

/// Returns why a score of the model has no sources, or "".
std::string no_sources_reason(const FullModelState& full_model);

}  // namespace app
