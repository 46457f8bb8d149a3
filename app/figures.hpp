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

#include "app/token_lines.hpp"
#include "app/worker.hpp"
#include "core/attention/head_facts.hpp"
#include "core/attention/row_facts.hpp"
#include "core/attention/stages.hpp"
#include "core/attention/trace.hpp"

namespace app {

/// Which trace a figure is of: another version, other numbers.
struct FigureOf {
  std::uint64_t version = 0;
  std::size_t n_heads = 0, n_tokens = 0;
  bool same_shape(const FigureOf& other) const {
    return n_heads == other.n_heads && n_tokens == other.n_tokens;
  }
  friend bool operator==(const FigureOf&, const FigureOf&) = default;
};

/// What is worked out of a trace: at once when that is quick, else beside the window, while the last one of
/// that shape stays.
template <class Value>
class Figure {
 public:
  using Make = std::function<Value(const core::attention::GoesOn&)>;

  /// The figure of a trace, or the last one, or nullptr; make gives it and owns what it reads where it is not
  /// at once. Beside the window it is begun when it is asked for in a second frame: not in every frame of a
  /// drag.
  const Value* of(const FigureOf& key, bool at_once, const Make& make) {
    worker_.deliver();
    if (known_ && known_->first == key) return &known_->second;
    if (at_once) {
      worker_.cancel();
      asked_.reset();
      known_.emplace(key, make({}));
    } else if (seen_ != key) {
      seen_ = key;
      frames_ = 0;
    } else if (asked_ != key && frames_ > 0) {
      asked_ = key;
      worker_.start([this, key, make](const std::stop_token& stop) {
        const auto value = std::make_shared<Value>(make([&] { return !stop.stop_requested(); }));
        return [this, key, value] { known_.emplace(key, std::move(*value)); };
      });
    }
    return known_ && known_->first.same_shape(key) ? &known_->second : nullptr;
  }
  /// Before the questions of the next frame.
  void next_frame() { ++frames_; }
  /// Whether it is being worked out, or is to be in the next frame.
  bool is_busy() const {
    const bool is_known = known_ && seen_ && known_->first == *seen_;
    return worker_.is_busy() || (seen_ && frames_ < 2 && asked_ != seen_ && !is_known);
  }
  void when_done(std::function<void()> call) { worker_.when_done(std::move(call)); }
  /// Drops what is under way, and waits until it has ended.
  void stop() {
    worker_.cancel();
    worker_.wait();
    worker_.deliver();
    asked_.reset();
    seen_.reset();
  }

 private:
  std::optional<std::pair<FigureOf, Value>> known_;
  std::optional<FigureOf> seen_, asked_;
  int frames_ = 0;  // since it was seen
  Worker worker_;
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
