#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "app/beside.hpp"
#include "app/token_lines.hpp"
#include "core/attention/head_facts.hpp"
#include "core/attention/row_facts.hpp"
#include "core/attention/stages.hpp"
#include "core/attention/trace.hpp"

namespace app {

/// What a figure is of: another version, other numbers.
struct FigureOf {
  std::uint64_t version = 0;
  std::size_t n_heads = 0, n_tokens = 0;
  std::uint64_t choice = 0;  ///< of what is worked out
  bool is_near(const FigureOf& other) const { return n_heads == other.n_heads && n_tokens == other.n_tokens; }
  friend bool operator==(const FigureOf&, const FigureOf&) = default;
};

/// What is worked out of a trace: at once when that is quick, else beside the window, while the last one of
/// that shape stays.
template <class Value>
class Figure {
 public:
  using Make = typename Beside<FigureOf, Value>::Make;

  /// The figure of a trace, or the last one, or nullptr; make gives it and owns what it reads where it is not
  /// at once. Beside the window it is begun when it is asked for in a second frame: not in every frame of a
  /// drag.
  const Value* of(const FigureOf& key, bool at_once, const Make& make) {
    if (std::exchange(seen_, key) != key) frames_ = 0;
    const bool is_needed = beside_.needs(key) || (at_once && !beside_.is_of(key));
    if (is_needed && (at_once || frames_ > 0)) beside_.begin(key, at_once, make);
    return beside_.value() && beside_.key()->is_near(key) ? beside_.value() : nullptr;
  }
  /// Before the questions of the next frame.
  void next_frame() { ++frames_; }
  /// Whether it is being worked out, or is to be in the next frame.
  bool is_busy() const {
    const bool is_next = seen_ && frames_ < 2 && !beside_.has_asked_for(*seen_) && !beside_.is_of(*seen_);
    return beside_.is_busy() || is_next;
  }
  void when_done(std::function<void()> call) { beside_.when_done(std::move(call)); }
  /// Drops what is under way, and waits until it has ended.
  void stop() {
    beside_.cancel();
    beside_.wait();
    beside_.take();
    seen_.reset();
  }

 private:
  std::optional<FigureOf> seen_;
  int frames_ = 0;  // since it was seen
  Beside<FigureOf, Value> beside_;
};

/// What takes a while to work out of all weights of a trace, each once for a version of it.
///
/// While the figures of a large trace are worked out, those of the one before are given, or empty ones.
class Figures {
 public:
  /// The facts of every head.
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

  /// Before every frame: the trace that heads() and the others will be asked about; it may be read as long as
  /// the figures hold it.
  void read_from(std::shared_ptr<const core::attention::Trace> trace);
  /// Drops what is under way, as the trace is going to change; nobody reads it any longer.
  void stop();
  /// Whether anything is worked out beside the window, or will be in the next frame.
  bool is_busy() const {
    return heads_.is_busy() || likeness_.is_busy() || lines_.is_busy() || rows_.is_busy();
  }
  /// Is called from another thread when there is something new.
  void when_done(const std::function<void()>& call);

 private:
  bool may_wait(const core::attention::Trace& trace) const { return held_.get() == &trace; }

  std::shared_ptr<const core::attention::Trace> held_;
  std::vector<core::attention::HeadFacts> no_facts_;
  const arma::mat no_likeness_;
  const TokenLines no_lines_;
  std::optional<LineChoice> choice_;
  std::uint64_t choices_ = 0;
  Figure<std::vector<core::attention::HeadFacts>> heads_;
  Figure<arma::mat> likeness_;
  Figure<TokenLines> lines_;
  using RowsOf = std::pair<core::attention::Stage, std::size_t>;
  using AllRows = std::map<RowsOf, std::vector<core::attention::RowFacts>>;
  const std::vector<core::attention::RowFacts> no_rows_;
  std::set<RowsOf> wanted_rows_, asked_rows_;  // in the last frame, and so far in this one
  std::uint64_t row_choices_ = 0;
  Figure<AllRows> rows_;
};

/// Whether the likeness of a trace's heads takes no longer than a frame or two.
bool likeness_is_quick(const core::attention::Trace& trace);

}  // namespace app
