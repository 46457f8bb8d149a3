#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "app/session/jobs.hpp"
#include "app/session/view.hpp"
#include "core/engine/engine.hpp"
#include "core/graph/stages.hpp"
#include "core/graph/trace.hpp"
#include "core/out/figure.hpp"

namespace app {

/// Smallest and largest finite number of a matrix; both 0 when it has none.
struct ValueRange {
  double smallest = 0, largest = 0;
  double least = 0;  ///< the smallest nonzero absolute value; 0 when there is none
};

/// Numbers of cells that a color range clips.
struct ClippedCounts {
  std::size_t below = 0, above = 0;  ///< beyond its ends
  std::size_t small = 0,
              zero = 0;  ///< logarithmic range: nonzero but below its least absolute value, and exactly 0
};
ClippedCounts count_clipped(const arma::mat& numbers, const ColorLimits& range);

ValueRange value_range(const arma::mat& numbers);

/// Value ranges of stages, each computed once for a version of the trace.
class ValueRanges {
 public:
  const ValueRange& of(const core::attention::Trace& trace, std::uint64_t version,
                       core::attention::Stage stage, std::size_t head);
  /// Stores a range that was computed elsewhere.
  const ValueRange& remember(std::uint64_t version, core::attention::Stage stage, std::size_t head,
                             const ValueRange& number_range);

  /// Returns the range of the latest version for which it was computed, or an empty one.
  const ValueRange& last(core::attention::Stage stage, std::size_t head) const;

  /// Returns the counts of cells beyond a range; recounted only for another range or version.
  const ClippedCounts& clipped_counts(const core::attention::Trace& trace, std::uint64_t version,
                                      core::attention::Stage stage, std::size_t head,
                                      const ColorLimits& range);

 private:
  struct Counted {
    ColorLimits range;
    ClippedCounts cells;
  };
  void set_version(std::uint64_t version);

  std::uint64_t version_ = 0;
  std::map<std::pair<core::attention::Stage, std::size_t>, ValueRange> known_, last_;
  const ValueRange nothing_;
  std::map<std::pair<core::attention::Stage, std::size_t>, Counted> counted_;
};

/// Returns the value range of one matrix of a trace.
using ValueRangeFunction = std::function<ValueRange(core::attention::Stage stage, std::size_t head)>;

/// Returns the color range of a matrix of a model with those stages as chosen: locked, typed, fixed, or
/// following the numbers.
ColorLimits color_limits(const ColorChoice& chosen, const core::attention::Model& model,
                         const core::attention::StageSet& stages, const ValueRangeFunction& number_range,
                         core::attention::Stage stage, std::size_t head);

/// Draws the figure in these colors, which replace those of the options.
core::figures::DisplayList colored_figure(const core::attention::Model& model,
                                          const core::attention::Trace& trace,
                                          core::figures::FigureOptions options, const ColorChoice& chosen);

class LiveTrace;

/// Source of the numbers of a stage for pictures, as stored or computed in full in the background, of their
/// changes and of their value range.
class PictureSource {
 public:
  explicit PictureSource(Jobs& jobs) : results_(jobs), visible_(jobs) {}

  /// Follows a trace; called before every frame. The trace must stay valid until the next call.
  void follow(const LiveTrace& live);

  /// Returns the numbers of a stage, or nothing when they are not stored row by row.
  core::attention::fast::RowView rows(core::attention::Stage stage, std::size_t head) const;
  /// Returns the changes since the previous version in stages that rows() has; nullptr for everything.
  const core::attention::fast::HeadChange* change(std::size_t head) const;
  /// Returns n_tokens × n_keys, 0 = masked; recomputed only for another mask, and nullptr while that runs in
  /// the background.
  const arma::mat* visible() const { return mask_ && visible_.matches(*mask_) ? visible_.value() : nullptr; }
  /// Returns a number that changes with the mask.
  std::uint64_t mask_version() const { return mask_version_; }

  /// Whether all numbers of a stage can be read immediately. If not, they are computed in the background once
  /// the trace has stayed the same for a frame.
  bool is_ready(core::attention::Stage stage, std::size_t head) const;
  /// Returns the value range of a ready stage if it was found in the background, else nullptr.
  const ValueRange* number_range(core::attention::Stage stage, std::size_t head) const;
  /// Whether a stage has few enough numbers to read all of them in every frame.
  bool is_small(core::attention::Stage stage, std::size_t head) const;
  /// Returns the counts of cells of a stage beyond a range; while they are counted in the background, those
  /// of an earlier version, or nullptr.
  const ClippedCounts* clipped_counts(core::attention::Stage stage, std::size_t head,
                                      const ColorLimits& range) const;
  /// Whether anything is being computed, or will be in the next frame.
  bool is_busy() const { return request_ || results_.is_busy() || visible_.is_busy(); }
  /// Cancels all computations.
  void stop();

 private:
  using StageKey = std::pair<core::attention::Stage, std::size_t>;
  struct StageRequest {
    StageKey what;
    std::optional<ColorLimits> clip_range;  // range to count against; without one the numbers are computed
    friend bool operator==(const StageRequest&, const StageRequest&) = default;
  };
  /// Inputs of visible().
  struct MaskKey {
    core::attention::Mask rule;
    std::size_t sequence = 0, n_tokens = 0, n_keys = 0;
    bool is_known = true;
    friend bool operator==(const MaskKey&, const MaskKey&) = default;
  };
  struct Counted {
    ColorLimits range;
    std::uint64_t version = 0;
    ClippedCounts cells;
  };
  struct RequestKey {
    std::uint64_t version = 0;
    StageRequest request;
    bool is_compatible(const RequestKey& newest) const { return version == newest.version; }
    friend bool operator==(const RequestKey&, const RequestKey&) = default;
  };
  using Result = std::variant<ValueRange, ClippedCounts>;

  void take_result();
  void begin_request(const StageRequest& request);
  bool has_failed(const StageRequest& request) const;
  void follow_mask();

  const LiveTrace* live_ = nullptr;
  std::uint64_t version_ = 0, mask_version_ = 0;
  std::vector<core::attention::fast::HeadChange> changes_;  // [head]; empty when everything changed
  std::optional<MaskKey> mask_;
  std::map<StageKey, ValueRange> extents_;  // of this version
  std::map<StageKey, Counted> counted_;
  mutable std::optional<StageRequest> request_;  // the first one of the last frame
  std::vector<StageRequest> failed_;             // of this version; not retried
  AsyncValue<RequestKey, Result> results_;
  AsyncValue<MaskKey, arma::mat> visible_;
};

}  // namespace app
