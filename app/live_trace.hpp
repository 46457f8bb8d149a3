#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "app/worker.hpp"
#include "core/attention/model.hpp"
#include "core/attention/trace.hpp"

namespace app {

/// The trace of the newest model, or of the latest whose trace is complete.
///
/// What takes no longer than a frame is computed at once, the rest beside the window. Meanwhile model(),
/// sequence() and trace() stay those of one state, which was true a moment ago.
class LiveTrace {
 public:
  /// Computes the first trace at once. Throws core::Error.
  explicit LiveTrace(const core::attention::Model& model);

  /// Takes over what was finished beside the window, then goes after the trace of a model.
  ///
  /// What is under way for an older model is finished and shown when it is of the same shape, so that a drag
  /// is seen to move; else it is dropped. Throws core::Error, also that of a computation beside the window.
  void follow(const core::attention::Model& model, std::size_t sequence);
  /// Follows, and waits until the trace is of this model.
  void catch_up(const core::attention::Model& model, std::size_t sequence);

  const core::attention::Model& model() const { return shown_.model; }
  std::size_t sequence() const { return shown_.sequence; }
  const core::attention::Trace& trace() const { return *shown_.trace; }
  /// The same, for those who read it beside the window.
  std::shared_ptr<const core::attention::Trace> shared_trace() const { return shown_.trace; }
  std::uint64_t version() const { return version_; }  ///< of the trace: another number, other numbers
  double compute_ms() const { return shown_.ms; }

  /// Whether the trace of the last model that was followed is still to come.
  bool is_behind() const { return asked_ && !asked_->failed; }
  /// How long that has been so, in seconds.
  double seconds_behind() const;
  /// How much of the work is done, as far as can be foreseen: 0 … 1.
  double share_done() const;

  /// Is called from another thread whenever there is something to take over.
  void when_done(std::function<void()> call) { worker_.when_done(std::move(call)); }

 private:
  using Clock = std::chrono::steady_clock;
  struct State {
    core::attention::Model model;
    std::size_t sequence = 0;
    std::shared_ptr<const core::attention::Trace> trace;
    double ms = 0;
  };
  struct Asked {
    core::attention::Model model;
    std::size_t sequence = 0;
    Clock::time_point since;  // when the last trace was shown, or nothing else was asked for
    bool failed = false;
  };

  static void compute(State& state);
  void compute_beside(const core::attention::Model& model, std::size_t sequence);
  void show(State state);

  State shown_;
  std::uint64_t version_ = 0;
  std::optional<Asked> asked_;
  Worker worker_;
};

/// Whether a model's trace is expected to take no longer than a frame.
bool is_quick(const core::attention::Model& model);

}  // namespace app
