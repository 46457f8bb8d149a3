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
#include "core/graph/dropout_study.hpp"
#include "core/graph/head_facts.hpp"
#include "core/graph/row_facts.hpp"
#include "core/graph/stages.hpp"
#include "core/graph/trace.hpp"

namespace app {

/// Which weights are to become lines from queries to keys.
struct LineChoice {
  std::vector<std::size_t> heads;
  double hide_below = 0;             ///< weights below it get no line, nor does 0
  std::optional<std::size_t> query;  ///< its lines come before all others
  std::size_t most = 0;              ///< more lines than that are not drawn
  friend bool operator==(const LineChoice&, const LineChoice&) = default;
};

struct TokenLine {
  std::size_t query = 0, key = 0, head = 0;
  double weight = 0;
  friend bool operator==(const TokenLine&, const TokenLine&) = default;
};

/// The lines, those that matter most last, and what they leave out.
struct TokenLines {
  std::vector<TokenLine> lines;
  std::size_t visible = 0;  ///< pairs of tokens that the mask shows, in all chosen heads
  std::size_t above = 0;    ///< of them not hidden by the threshold; as many lines, unless they are too many
  double carried = 0, total = 0;  ///< the weight of the lines, and of all visible pairs
};

/// The lines of the weights before dropout; when they are too many the strongest, those of the query first.
/// Of no use once goes_on, which is asked between rows, says no.
TokenLines token_lines(const core::attention::Trace& trace, const LineChoice& choice,
                       const core::Token& token = {});

/// What a statistic is of: another version, other numbers.
struct StatisticOf {
  std::uint64_t version = 0;
  std::size_t n_heads = 0, n_tokens = 0;
  std::uint64_t choice = 0;  ///< of what is worked out
  bool is_near(const StatisticOf& other) const {
    return n_heads == other.n_heads && n_tokens == other.n_tokens;
  }
  friend bool operator==(const StatisticOf&, const StatisticOf&) = default;
};

/// What takes a while to work out of all weights of a trace, each once for a version of it: at once when that
/// is quick, else in the background.
///
/// While the statistics of a large trace are worked out, those of the one before are given where it was of
/// the same shape, or empty ones.
class Statistics {
 public:
  explicit Statistics(Jobs& jobs) : heads_(jobs), similarity_(jobs), lines_(jobs), rows_(jobs) {}

  /// The facts of every head, as many as the trace has heads.
  const std::vector<core::attention::HeadFacts>& heads(const core::attention::Trace& trace,
                                                       std::uint64_t version,
                                                       std::span<const std::string> tokens);
  /// n_heads × n_heads, or empty.
  const arma::mat& similarity(const core::attention::Trace& trace, std::uint64_t version);
  /// The facts of every row of a stage, or none.
  const std::vector<core::attention::RowFacts>& rows(const core::attention::Trace& trace,
                                                     std::uint64_t version, core::attention::Stage stage,
                                                     std::size_t head);
  /// The lines of the last choice.
  const TokenLines& lines(const core::attention::Trace& trace, std::uint64_t version,
                          const LineChoice& choice);

  /// Before every frame: whose trace heads() and the others will be asked about; it stays until the next.
  /// What is asked of other traces is worked out at once.
  void read_from(const LiveTrace& live);
  /// Whether anything is worked out in the background, or will be in the next frame.
  bool is_busy() const {
    return heads_.is_busy() || similarity_.is_busy() || lines_.is_busy() || rows_.is_busy();
  }

 private:
  using RowsOf = std::pair<core::attention::Stage, std::size_t>;
  using AllRows = std::map<RowsOf, std::vector<core::attention::RowFacts>>;
  template <class Value, class Make>
  const Value* worked_out(AsyncValue<StatisticOf, Value>& slot, const core::attention::Trace& trace,
                          const StatisticOf& key, bool is_quick, const Make& make);
  bool may_wait(const core::attention::Trace& trace) const { return live_ && &live_->trace() == &trace; }

  const LiveTrace* live_ = nullptr;
  std::vector<core::attention::HeadFacts> no_facts_;
  const arma::mat no_similarity_;
  const TokenLines no_lines_;
  const std::vector<core::attention::RowFacts> no_rows_;
  std::optional<LineChoice> choice_;
  std::uint64_t choices_ = 0;
  std::set<RowsOf> wanted_rows_, asked_rows_;  // in the last frame, and so far in this one
  std::uint64_t row_choices_ = 0;
  AsyncValue<StatisticOf, std::vector<core::attention::HeadFacts>> heads_;
  AsyncValue<StatisticOf, arma::mat> similarity_;
  AsyncValue<StatisticOf, TokenLines> lines_;
  AsyncValue<StatisticOf, AllRows> rows_;
};

/// Whether the similarity of a trace's heads takes no longer than a frame or two.
bool similarity_is_quick(const core::attention::Trace& trace);

/// What the dropout laboratory shows: a study of the shown head as far as it has been drawn.
struct Laboratory {
  /// The curve of the mean's distance ends after so many masks.
  static constexpr std::size_t max_masks = 1024;

  std::size_t n_masks = 64;         ///< over how many the mean is taken
  std::vector<double> distances;    ///< as of DropoutStudy
  std::vector<arma::vec> row_sums;  ///< likewise
  arma::mat mean,
      difference;  ///< of the first n_masks, or of as many as were drawn; the mean less the weights
  ValueRange mean_range, difference_range;
  arma::vec sums_before, sums_after;  ///< of the trace's weights, and of what its one mask leaves
  arma::rowvec ones;                  ///< ten ones under the same dropout
  std::uint64_t revision = 0;         ///< another number, other numbers
  std::uint64_t version = 0;          ///< of the trace
  std::size_t head = 0, sequence = 0;

  std::size_t count() const { return distances.size(); }
  std::size_t n_rows() const { return mean.n_rows; }
  bool is_complete() const { return count() >= max_masks; }
};

/// Draws the laboratory's masks in the background, a portion at a time.
class MaskDrawing {
 public:
  explicit MaskDrawing(Jobs& jobs) : jobs_(jobs), portions_(jobs) {}

  /// Before every frame in which the laboratory is shown. The study of an older trace stays until the newest
  /// has its first masks.
  void follow(const LiveTrace& live, std::size_t head, std::size_t n_masks);
  /// Drops everything.
  void stop();
  const Laboratory* laboratory() const { return shown_.get(); }
  bool is_busy() const { return portions_.is_busy(); }

 private:
  struct Of {
    std::uint64_t version = 0;
    std::size_t head = 0, n_masks = 0;
    std::size_t n_before = 0;  // masks that were drawn before this portion
    friend bool operator==(const Of&, const Of&) = default;
  };
  struct Portion;
  using Next = std::shared_ptr<Portion>;

  void begin(const LiveTrace& live, const Of& of);
  void take(Portion& portion);

  Jobs& jobs_;
  std::optional<Of> of_;  // the first portion
  std::shared_ptr<Laboratory> shown_;
  std::shared_ptr<core::attention::DropoutStudy> study_;  // only the worker reads and advances it
  std::uint64_t revision_ = 0;
  AsyncValue<Of, Next> portions_;
};

}  // namespace app
