#pragma once

#include <atomic>
#include <chrono>
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

  StopToken() = default;
  explicit StopToken(PreemptFlag preempted) : preempted_(std::move(preempted)) {}
  StopToken(const StopToken&) = delete;
  StopToken& operator=(const StopToken&) = delete;

  /// Tells the work to stop at its next step.
  void stop() { stopped_ = true; }
  bool should_continue() const { return !stopped_ && !(preempted_ && *preempted_); }

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

  /// Returns whether the work should return now, to be called again in a later frame, with what it has kept
  /// of its progress: where there are no threads it runs between frames. The value that it then returns is
  /// dropped.
  bool pauses() const { return is_paused_ = is_paused_ || is_due(); }
  /// Returns the same for work that rather returns a part, for which it is called anew.
  bool is_due() const {
    return piece_end_ != std::chrono::steady_clock::time_point::max() &&
           std::chrono::steady_clock::now() >= piece_end_;
  }
  /// Begins a piece of the work, until that time.
  void begin_piece(std::chrono::steady_clock::time_point end) { piece_end_ = end, is_paused_ = false; }
  bool is_paused() const { return is_paused_; }

 private:
  PreemptFlag preempted_;
  std::atomic<bool> stopped_ = false;
  mutable std::atomic<std::uint64_t> done_ = 0;
  mutable std::atomic<double> share_ = 0;
  std::chrono::steady_clock::time_point piece_end_ = std::chrono::steady_clock::time_point::max();
  mutable bool is_paused_ = false;  // of the only thread, where the work has pieces
};

}  // namespace core
