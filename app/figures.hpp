#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "app/token_lines.hpp"
#include "app/worker.hpp"
#include "core/attention/head_facts.hpp"
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
  /// The figure of a trace, or the last one, or nullptr; make gives it and owns what it reads where it is not
  /// at once.
  const Value* of(const FigureOf& key, bool at_once, const std::function<Value()>& make) {
    worker_.deliver();
    if (known_ && known_->first == key) return &known_->second;
    if (at_once) {
      worker_.cancel();
      asked_.reset();
      known_.emplace(key, make());
    } else if (asked_ != key) {
      asked_ = key;
      worker_.start([this, key, make](const std::stop_token&) {
        const auto value = std::make_shared<Value>(make());
        return [this, key, value] { known_.emplace(key, std::move(*value)); };
      });
    }
    return known_ && known_->first.same_shape(key) ? &known_->second : nullptr;
  }
  bool is_busy() const { return worker_.is_busy(); }
  void when_done(std::function<void()> call) { worker_.when_done(std::move(call)); }
  /// Drops what is under way and waits for its end.
  void stop() {
    worker_.cancel();
    worker_.wait();
    worker_.deliver();
    asked_.reset();
  }

 private:
  std::optional<std::pair<FigureOf, Value>> known_;
  std::optional<FigureOf> asked_;
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
  /// The lines of the last choice.
  const TokenLines& lines(const core::attention::Trace& trace, std::uint64_t version,
                          const LineChoice& choice);

  /// The trace that heads() and the others will be asked about; it may be read as long as the figures hold
  /// it.
  void read_from(std::shared_ptr<const core::attention::Trace> trace) { held_ = std::move(trace); }
  /// Ends all reading, as the trace is going to change.
  void stop();
  bool is_busy() const { return heads_.is_busy() || likeness_.is_busy() || lines_.is_busy(); }
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
};

/// Whether the likeness of a trace's heads takes no longer than a frame or two.
bool likeness_is_quick(const core::attention::Trace& trace);

}  // namespace app
