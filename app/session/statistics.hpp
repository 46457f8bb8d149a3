#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "app/session/live_trace.hpp"
#include "app/session/slot.hpp"
#include "app/session/token_lines.hpp"
#include "core/graph/head_facts.hpp"
#include "core/graph/row_facts.hpp"
#include "core/graph/stages.hpp"
#include "core/graph/trace.hpp"

namespace app {

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
/// is quick, else beside the window.
///
/// While the statistics of a large trace are worked out, those of the one before are given where it was of
/// the same shape, or empty ones.
class Statistics {
 public:
  explicit Statistics(Jobs& jobs) : heads_(jobs), likeness_(jobs), lines_(jobs), rows_(jobs) {}

  /// The facts of every head, as many as the trace has heads.
  const std::vector<core::attention::HeadFacts>& heads(const core::attention::Trace& trace,
                                                       std::uint64_t version,
                                                       std::span<const std::string> tokens);
  /// n_heads × n_heads, or empty.
  const arma::mat& likeness(const core::attention::Trace& trace, std::uint64_t version);
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
  /// Whether anything is worked out beside the window, or will be in the next frame.
  bool is_busy() const {
    return heads_.is_busy() || likeness_.is_busy() || lines_.is_busy() || rows_.is_busy();
  }

 private:
  using RowsOf = std::pair<core::attention::Stage, std::size_t>;
  using AllRows = std::map<RowsOf, std::vector<core::attention::RowFacts>>;
  template <class Value, class Make>
  const Value* worked_out(Slot<StatisticOf, Value>& slot, const core::attention::Trace& trace,
                          const StatisticOf& key, bool is_quick, const Make& make);
  bool may_wait(const core::attention::Trace& trace) const { return live_ && &live_->trace() == &trace; }

  const LiveTrace* live_ = nullptr;
  std::vector<core::attention::HeadFacts> no_facts_;
  const arma::mat no_likeness_;
  const TokenLines no_lines_;
  const std::vector<core::attention::RowFacts> no_rows_;
  std::optional<LineChoice> choice_;
  std::uint64_t choices_ = 0;
  std::set<RowsOf> wanted_rows_, asked_rows_;  // in the last frame, and so far in this one
  std::uint64_t row_choices_ = 0;
  Slot<StatisticOf, std::vector<core::attention::HeadFacts>> heads_;
  Slot<StatisticOf, arma::mat> likeness_;
  Slot<StatisticOf, TokenLines> lines_;
  Slot<StatisticOf, AllRows> rows_;
};

/// Whether the likeness of a trace's heads takes no longer than a frame or two.
bool likeness_is_quick(const core::attention::Trace& trace);

}  // namespace app
