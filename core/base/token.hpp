#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "core/base/error.hpp"

namespace core {

/// Error of work that was stopped on request.
class Stopped : public Error {
 public:
  Stopped() : Error("stopped") {}
};

/// Shared by the owner of some work, who may stop it, and the worker, who gets it const and reports progress.
/// Thread-safe.
class StopToken {
 public:
  /// True once the data that the work reads is needed elsewhere, which also stops the work; may be nullptr.
  using PreemptFlag = std::shared_ptr<const std::atomic<bool>>;
  using TimePoint = std::chrono::steady_clock::time_point;
  /// Leaves the stack of the work; returns, when its next piece begins, until when that goes on. May be
  /// nullptr.
  using Pause = TimePoint (*)();

  StopToken() = default;
  explicit StopToken(PreemptFlag preempted) : preempted_(std::move(preempted)) {}
  StopToken(const StopToken&) = delete;
  StopToken& operator=(const StopToken&) = delete;

  /// Tells the work to stop at its next step.
  void stop() { stopped_ = true; }
  /// Returns, for the work, whether it should go on; after its time in a page it first pauses.
  bool should_continue() const {
    if (pause_ && is_due()) piece_end_ = pause_();
    return !is_stopped();
  }
  /// Returns the same for everybody.
  bool is_stopped() const { return stopped_ || (preempted_ && *preempted_); }

  /// Counts completed work: bytes, or tries.
  void count(std::uint64_t amount) const { done_ += amount; }
  /// Does the same for open-ended work: throws Stopped once the work has to stop.
  void add(std::uint64_t amount) const {
    if (!should_continue()) throw Stopped();
    count(amount);
  }
  std::uint64_t done() const { return done_; }

  /// Reports the completed share of the work, as estimated: 0 … 1.
  void report(double share) const { share_ = share; }
  double share() const { return share_; }

  /// Returns whether the work should deliver a part, for which it is started again: where there are no
  /// threads it runs between frames.
  bool is_due() const {
    return piece_end_ != TimePoint::max() && std::chrono::steady_clock::now() >= piece_end_;
  }
  /// Begins a piece of the work, until that time.
  void begin_piece(TimePoint end, Pause pause) { piece_end_ = end, pause_ = pause; }

  /// Keeps the work from pausing as long as what it returns lives: while the work holds a lock, for which
  /// another one of the same thread would wait forever.
  std::shared_ptr<const void> without_pause() const {
    if (!pause_) return {};
    return {nullptr, [this, pause = std::exchange(pause_, nullptr)](std::nullptr_t) { pause_ = pause; }};
  }

 private:
  PreemptFlag preempted_;
  std::atomic<bool> stopped_ = false;
  mutable std::atomic<std::uint64_t> done_ = 0;
  mutable std::atomic<double> share_ = 0;
  mutable TimePoint piece_end_ = TimePoint::max();  // of the only thread, where the work has pieces
  mutable Pause pause_ = nullptr;
};

}  // namespace core
