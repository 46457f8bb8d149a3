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
  explicit LiveSources(Jobs& jobs) : direct_(jobs), complete_(jobs), sum_(jobs) {}

  /// Requests the sources of a cell of a reading, or stops. Once a frame.
  void follow(const FullModelState& full_model, const ReadingRef& reading,
              const std::optional<core::explain::CellAddress>& cell,
              const std::shared_ptr<core::ThreadPool>& pool);
  void clear() { direct_.clear(), complete_.clear(), sum_.clear(); }

  /// Returns the sources of a cell, with the names of parts alone while totals are being computed; or
  /// nullptr.
  const core::circuits::ScoreSources* of(const FullModelState& full_model, const ReadingRef& reading,
                                         const core::explain::CellAddress& cell) const;
  /// Returns the sources of a number of context vectors or of the residual stream before a layer, or nullptr.
  const core::circuits::WrittenSum* sum_of(const FullModelState& full_model, const ReadingRef& reading,
                                           const core::explain::CellAddress& cell) const;
  bool is_busy() const { return direct_.is_busy() || complete_.is_busy() || sum_.is_busy(); }

 private:
  struct Key {
    core::transformer::PassRef pass;
    core::circuits::ScoreCell cell;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct SumKey {
    core::transformer::PassRef pass;
    std::size_t layer = 0;
    core::explain::CellAddress cell;
    friend bool operator==(const SumKey&, const SumKey&) = default;
  };
  static std::optional<SumKey> sum_key(const FullModelState& full_model, const ReadingRef& reading,
                                       const core::explain::CellAddress& cell);
  static std::optional<Key> key_of(const FullModelState& full_model, const ReadingRef& reading,
                                   const core::explain::CellAddress& cell);

  AsyncValue<Key, core::circuits::ScoreSources> direct_, complete_;
  AsyncValue<SumKey, core::circuits::WrittenSum> sum_;
};

/// Return whether a cell is a score or a weight, and whether it is a sum: of context vectors, or the input of
/// a layer. Both may have sources.
bool is_written_sum(const core::explain::CellAddress& cell);
bool is_score(const core::explain::CellAddress& cell);

/// Returns the token that maps of heads mark: the pinned query, or the one predicted from.
std::size_t marked_token(const Look& look, const core::experiment::TextReading& now);

/// Returns the largest weight of the marked token in the selected head of a layer; nothing before there is a
/// reading, and where a cell of its map stands for several.
std::optional<CellRef> largest_weight(const Pending& now);

/// Returns why a score of the model has no sources, or "".
std::string no_sources_reason(const FullModelState& full_model);

}  // namespace app
