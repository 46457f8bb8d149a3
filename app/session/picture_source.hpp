#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "app/session/jobs.hpp"
#include "app/session/view.hpp"
#include "core/engine/engine.hpp"
#include "core/graph/model.hpp"
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
struct Beyond {
  std::size_t below = 0, above = 0;  ///< beyond its ends
  std::size_t small = 0,
              zero = 0;  ///< logarithmic range: nonzero but below its least absolute value, and exactly 0
};
Beyond beyond(const arma::mat& numbers, const Ends& range);

ValueRange value_range(const arma::mat& numbers);

/// Value ranges of stages, each computed once for a version of the trace.
class ValueRanges {
 public:
  const ValueRange& of(const core::attention::Trace& trace, std::uint64_t version,
                       core::attention::Stage stage, std::size_t head);
  /// Stores a range that was computed elsewhere.
  const ValueRange& remember(std::uint64_t version, core::attention::Stage stage, std::size_t head,
                             const ValueRange& extent);

  /// Returns the range of the latest version for which it was computed, or an empty one.
  const ValueRange& last(core::attention::Stage stage, std::size_t head) const;

  /// Returns the counts of cells beyond a range; recounted only for another range or version.
  const Beyond& out_of_range(const core::attention::Trace& trace, std::uint64_t version,
                             core::attention::Stage stage, std::size_t head, const Ends& range);

 private:
  struct Counted {
    Ends range;
    Beyond cells;
  };
  void start_with(std::uint64_t version);

  std::uint64_t version_ = 0;
  std::map<std::pair<core::attention::Stage, std::size_t>, ValueRange> known_, last_;
  const ValueRange nothing_;
  std::map<std::pair<core::attention::Stage, std::size_t>, Counted> counted_;
};

/// Returns the value range of one matrix of a trace.
using RangeOf = std::function<ValueRange(core::attention::Stage stage, std::size_t head)>;

/// Returns the color range of a matrix as chosen: locked, typed, fixed, or following the numbers.
Ends color_ends(const ColorChoice& chosen, const core::attention::Model& model, const RangeOf& extent,
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
  explicit PictureSource(Jobs& jobs) : answers_(jobs), visible_(jobs) {}

  /// Follows a trace; called before every frame. The trace must stay valid until the next call.
  void follow(const LiveTrace& live);

  /// Returns the numbers of a stage, or nothing when they are not stored row by row.
  core::attention::fast::RowView rows(core::attention::Stage stage, std::size_t head) const;
  /// Returns the changes since the previous version in stages that rows() has; nullptr for everything.
  const core::attention::fast::HeadChange* change(std::size_t head) const;
  /// Returns n_tokens × n_keys, 0 = masked; recomputed only for another mask, and nullptr while that runs in
  /// the background.
  const arma::mat* visible() const { return mask_ && visible_.is_of(*mask_) ? visible_.value() : nullptr; }
  /// Returns a number that changes with the mask.
  std::uint64_t mask_version() const { return mask_version_; }

  /// Whether all numbers of a stage can be read immediately. If not, they are computed in the background once
  /// the trace has stayed the same for a frame.
  bool is_ready(core::attention::Stage stage, std::size_t head) const;
  /// Returns the value range of a ready stage if it was found in the background, else nullptr.
  const ValueRange* extent(core::attention::Stage stage, std::size_t head) const;
  /// Whether a stage has few enough numbers to read all of them in every frame.
  bool is_small(core::attention::Stage stage, std::size_t head) const;
  /// Returns the counts of cells of a stage beyond a range; while they are counted in the background, those
  /// of an earlier version, or nullptr.
  const Beyond* out_of_range(core::attention::Stage stage, std::size_t head, const Ends& range) const;
  /// Whether anything is being computed, or will be in the next frame.
  bool is_making() const { return wish_ || answers_.is_busy() || visible_.is_busy(); }
  /// Cancels all computations.
  void stop();

 private:
  using StageOf = std::pair<core::attention::Stage, std::size_t>;
  struct Wish {
    StageOf what;
    std::optional<Ends> outside;  // range to count against; without one the numbers are computed
    friend bool operator==(const Wish&, const Wish&) = default;
  };
  /// Inputs of visible().
  struct Mask {
    core::attention::Mask rule;
    std::size_t sequence = 0, n_tokens = 0, n_keys = 0;
    bool is_known = true;
    friend bool operator==(const Mask&, const Mask&) = default;
  };
  struct Counted {
    Ends range;
    std::uint64_t version = 0;
    Beyond cells;
  };
  struct Question {
    std::uint64_t version = 0;
    Wish wish;
    bool is_near(const Question& newest) const { return version == newest.version; }
    friend bool operator==(const Question&, const Question&) = default;
  };
  using Answer = std::variant<ValueRange, Beyond>;

  void take_answer();
  void ask(const Wish& wish);
  bool has_failed(const Wish& wish) const;
  void follow_mask();

  const LiveTrace* live_ = nullptr;
  std::uint64_t version_ = 0, mask_version_ = 0;
  std::vector<core::attention::fast::HeadChange> changes_;  // [head]; empty when everything changed
  std::optional<Mask> mask_;
  std::map<StageOf, ValueRange> extents_;  // of this version
  std::map<StageOf, Counted> counted_;
  mutable std::optional<Wish> wish_;  // the first one of the last frame
  std::vector<Wish> failed_;          // of this version; not retried
  AsyncValue<Question, Answer> answers_;
  AsyncValue<Mask, arma::mat> visible_;
};

}  // namespace app
