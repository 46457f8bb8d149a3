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

/// The smallest and the largest finite number of a matrix; both 0 when it has none.
struct ValueRange {
  double smallest = 0, largest = 0;
  double least = 0;  ///< the smallest size of those that are not 0; 0 when there is none
};

/// How many cells the ends of a range of colors do not show as they are.
struct Beyond {
  std::size_t below = 0, above = 0;  ///< beyond its ends
  std::size_t small = 0,
              zero = 0;  ///< of a logarithmic range: nearer to 0 than its least size, and exactly 0
};
Beyond beyond(const arma::mat& numbers, const Ends& range);

ValueRange value_range(const arma::mat& numbers);

/// ValueRanges of stages, each worked out once for a version of the trace.
class ValueRanges {
 public:
  const ValueRange& of(const core::attention::Trace& trace, std::uint64_t version,
                       core::attention::Stage stage, std::size_t head);
  /// Remembers one that was worked out elsewhere.
  const ValueRange& remember(std::uint64_t version, core::attention::Stage stage, std::size_t head,
                             const ValueRange& extent);

  /// That of the latest version for which it was worked out, or an empty one.
  const ValueRange& last(core::attention::Stage stage, std::size_t head) const;

  /// The cells beyond a range; counted again only when the range is another one.
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

/// The extent of one matrix of a trace.
using RangeOf = std::function<ValueRange(core::attention::Stage stage, std::size_t head)>;

/// The ends of the colors of a matrix, as they were chosen: locked, typed, fixed, or following the numbers.
Ends color_ends(const ColorChoice& chosen, const core::attention::Model& model, const RangeOf& extent,
                core::attention::Stage stage, std::size_t head);

/// Draws the figure in these colors; what the options say of colors does not count.
core::figures::DisplayList colored_figure(const core::attention::Model& model,
                                          const core::attention::Trace& trace,
                                          core::figures::FigureOptions options, const ColorChoice& chosen);

class LiveTrace;

/// Where pictures of a trace find the numbers of a stage, as they are kept or made whole in the background,
/// what of them has changed, and what is known of all of them.
class PictureSource {
 public:
  explicit PictureSource(Jobs& jobs) : answers_(jobs), visible_(jobs) {}

  /// Before every frame; the trace must stay until the next.
  void follow(const LiveTrace& live);

  /// The numbers of a stage, or nothing when they are not kept row after row.
  core::attention::fast::RowView rows(core::attention::Stage stage, std::size_t head) const;
  /// What differs from the version before, in the stages that rows() knows; nullptr for everything.
  const core::attention::fast::HeadChange* change(std::size_t head) const;
  /// n_tokens × n_keys, 0 = hidden; made again only for another mask, and nullptr while that is done in the
  /// background.
  const arma::mat* visible() const { return mask_ && visible_.is_of(*mask_) ? visible_.value() : nullptr; }
  /// Another number: another mask.
  std::uint64_t mask_version() const { return mask_version_; }

  /// Whether all numbers of a stage can be read at once. If that would take too long they are made in the
  /// background, once the trace has stayed the same for a frame.
  bool is_ready(core::attention::Stage stage, std::size_t head) const;
  /// The extent of a stage that is ready, where it was found in the background; else nullptr.
  const ValueRange* extent(core::attention::Stage stage, std::size_t head) const;
  /// Whether all numbers of a stage are few enough to be looked at in every frame.
  bool is_small(core::attention::Stage stage, std::size_t head) const;
  /// The cells of a stage beyond a range; while they are counted in the background, those of a version
  /// before, or nullptr.
  const Beyond* out_of_range(core::attention::Stage stage, std::size_t head, const Ends& range) const;
  /// Whether anything is being made, or will be in the next frame.
  bool is_making() const { return wish_ || answers_.is_busy() || visible_.is_busy(); }
  /// Makes no more.
  void stop();

 private:
  using StageOf = std::pair<core::attention::Stage, std::size_t>;
  struct Wish {
    StageOf what;
    std::optional<Ends> outside;  // what is to be counted, else the numbers are to be made
    friend bool operator==(const Wish&, const Wish&) = default;
  };
  /// What visible() follows from.
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
  std::vector<core::attention::fast::HeadChange> changes_;  // [head]; empty for everything
  std::optional<Mask> mask_;
  std::map<StageOf, ValueRange> extents_;  // of this version
  std::map<StageOf, Counted> counted_;
  mutable std::optional<Wish> wish_;  // of the last frame, the first one
  std::vector<Wish> failed_;          // of this version: they are not tried again
  AsyncValue<Question, Answer> answers_;
  AsyncValue<Mask, arma::mat> visible_;
};

}  // namespace app
