#pragma once

#include <armadillo>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "app/session/jobs.hpp"
#include "app/session/live_trace.hpp"
#include "app/session/picture_source.hpp"
#include "core/graph/dropout.hpp"
#include "core/graph/stages.hpp"
#include "core/graph/statistics.hpp"
#include "core/graph/trace.hpp"

namespace app {

/// Choice of the weights that become lines from queries to keys.
struct LineChoice {
  std::vector<std::size_t> heads;
  double hide_below = 0;             ///< weights below it get no line, nor does 0
  std::optional<std::size_t> query;  ///< its lines come before all others
  std::size_t max_lines = 0;
  friend bool operator==(const LineChoice&, const LineChoice&) = default;
};

struct TokenLine {
  std::size_t query = 0, key = 0, head = 0;
  double weight = 0;
  friend bool operator==(const TokenLine&, const TokenLine&) = default;
};

/// The lines, most important last, and the totals to compare them with.
struct TokenLines {
  std::vector<TokenLine> lines;
  std::size_t n_unmasked = 0;  ///< unmasked pairs of tokens, in all chosen heads
  std::size_t n_above = 0;     ///< of these, pairs at or above hide_below: as many as lines, unless too many
  double line_weight = 0, total = 0;  ///< summed weights of the lines, and of all unmasked pairs
};

/// Returns the lines of the weights before dropout; if too many, those of the query, then the strongest.
/// Incomplete once token.goes_on(), which is checked between rows, is false.
TokenLines token_lines(const core::attention::Trace& trace, const LineChoice& choice,
                       const core::StopToken& token = {});

/// Inputs of a statistic; the version changes with the numbers of the trace.
struct StatisticKey {
  std::uint64_t version = 0;
  std::size_t n_heads = 0, n_tokens = 0;
  std::uint64_t choice = 0;  ///< number of the choice of lines or rows
  bool is_compatible(const StatisticKey& other) const {
    return n_heads == other.n_heads && n_tokens == other.n_tokens;
  }
  friend bool operator==(const StatisticKey&, const StatisticKey&) = default;
};

/// Statistics of all weights of a trace, each computed once per version: immediately when that is quick, else
/// in the background.
///
/// While the statistics of a large trace are computed, those of the previous one are returned if it had the
/// same shape, else empty ones.
class Statistics {
 public:
  explicit Statistics(Jobs& jobs) : heads_(jobs), similarity_(jobs), lines_(jobs), rows_(jobs) {}

  /// Returns the facts of every head, as many as the trace has heads.
  const std::vector<core::attention::HeadStatistics>& heads(const core::attention::Trace& trace,
                                                            std::uint64_t version,
                                                            std::span<const std::string> tokens);
  /// Returns the similarity of heads, n_heads × n_heads, or empty.
  const arma::mat& similarity(const core::attention::Trace& trace, std::uint64_t version);
  /// Returns the facts of every row of a stage, or none.
  const std::vector<core::attention::RowStatistics>& rows(const core::attention::Trace& trace,
                                                          std::uint64_t version, core::attention::Stage stage,
                                                          std::size_t head);
  /// Returns the lines of the last choice.
  const TokenLines& lines(const core::attention::Trace& trace, std::uint64_t version,
                          const LineChoice& choice);

  /// Sets the trace for background statistics; called before every frame, and it must stay valid until the
  /// next. Statistics of other traces are computed immediately.
  void follow_trace(const LiveTrace& live);
  /// Whether anything is computed in the background, or will be in the next frame.
  bool is_busy() const {
    return heads_.is_busy() || similarity_.is_busy() || lines_.is_busy() || rows_.is_busy();
  }

 private:
  using RowsKey = std::pair<core::attention::Stage, std::size_t>;
  using AllRows = std::map<RowsKey, std::vector<core::attention::RowStatistics>>;
  template <class Value, class Make>
  const Value* value_of(AsyncValue<StatisticKey, Value>& slot, const core::attention::Trace& trace,
                        const StatisticKey& key, bool is_quick, const Make& make);
  bool runs_in_background(const core::attention::Trace& trace) const {
    return live_ && &live_->trace() == &trace;
  }

  const LiveTrace* live_ = nullptr;
  std::vector<core::attention::HeadStatistics> no_facts_;
  const arma::mat no_similarity_;
  const TokenLines no_lines_;
  const std::vector<core::attention::RowStatistics> no_rows_;
  std::optional<LineChoice> choice_;
  std::uint64_t choices_ = 0;
  std::set<RowsKey> wanted_rows_, requested_rows_;  // requested in the last frame, and so far in this one
  std::uint64_t row_choice_version_ = 0;
  AsyncValue<StatisticKey, std::vector<core::attention::HeadStatistics>> heads_;
  AsyncValue<StatisticKey, arma::mat> similarity_;
  AsyncValue<StatisticKey, TokenLines> lines_;
  AsyncValue<StatisticKey, AllRows> rows_;
};

/// Whether the similarity of a trace's heads takes no longer than a frame or two.
bool similarity_is_quick(const core::attention::Trace& trace);

/// Contents of the dropout laboratory: a study of the displayed head over the masks sampled so far.
struct Laboratory {
  /// Number of masks after which the curve of the mean's distance ends.
  static constexpr std::size_t max_masks = 1024;

  std::size_t n_masks = 64;         ///< number of masks that are averaged
  std::vector<double> distances;    ///< as of DropoutStudy
  std::vector<arma::vec> row_sums;  ///< as of DropoutStudy
  arma::mat mean,
      difference;  ///< of the first n_masks, or of those sampled so far; the mean minus the weights
  ValueRange mean_range, difference_range;
  arma::vec sums_before, sums_after;  ///< row sums of the trace's weights before and after dropout
  arma::rowvec ones;                  ///< ten ones under the same dropout
  std::uint64_t revision = 0;         ///< changes with the numbers
  std::uint64_t version = 0;          ///< of the trace
  std::size_t head = 0, sequence = 0;

  std::size_t count() const { return distances.size(); }
  std::size_t n_rows() const { return mean.n_rows; }
  bool is_complete() const { return count() >= max_masks; }
};

/// Samples the laboratory's masks in the background, a portion at a time.
class MaskSampler {
 public:
  explicit MaskSampler(Jobs& jobs) : jobs_(jobs), portions_(jobs) {}

  /// Continues the study; must be called before every frame that shows the laboratory. The study of an older
  /// trace stays until the newest has its first masks.
  void follow(const LiveTrace& live, std::size_t head, std::size_t n_masks);
  /// Drops everything.
  void stop();
  const Laboratory* laboratory() const { return shown_.get(); }
  bool is_busy() const { return portions_.is_busy(); }

 private:
  struct StudyKey {
    std::uint64_t version = 0;
    std::size_t head = 0, n_masks = 0;
    std::size_t n_before = 0;  // masks sampled before this portion
    friend bool operator==(const StudyKey&, const StudyKey&) = default;
  };
  struct Portion;
  using PortionPtr = std::shared_ptr<Portion>;

  void begin(const LiveTrace& live, const StudyKey& of);
  void take(Portion& portion);

  Jobs& jobs_;
  std::optional<StudyKey> study_key_;  // the first portion
  std::shared_ptr<Laboratory> shown_;
  std::shared_ptr<core::attention::DropoutStudy> study_;  // only the worker reads and advances it
  std::uint64_t revision_ = 0;
  AsyncValue<StudyKey, PortionPtr> portions_;
};

}  // namespace app
