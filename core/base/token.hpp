#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "core/base/error.hpp"

namespace core {

/// Something was stopped by whoever asked for it.
class Stopped : public Error {
 public:
  Stopped() : Error("stopped") {}
};

/// Stands between whoever waits for some work, and may stop it, and whoever does it, who gets it const and
/// says how far it is. Safe between threads.
class Token {
 public:
  /// True once what the work reads is wanted back, which stops it as well; may be nullptr.
  using Recalled = std::shared_ptr<const std::atomic<bool>>;

  Token() = default;
  explicit Token(Recalled recalled) : recalled_(std::move(recalled)) {}
  Token(const Token&) = delete;
  Token& operator=(const Token&) = delete;

  /// Asks the work to stop at its next step.
  void stop() { stopped_ = true; }
  bool goes_on() const { return !stopped_ && !(recalled_ && *recalled_); }

  /// Counts what has been done: bytes, or tries.
  void count(std::uint64_t amount) const { done_ += amount; }
  /// The same for work that has no end of its own: throws Stopped once it is to stop.
  void add(std::uint64_t amount) const {
    if (!goes_on()) throw Stopped();
    count(amount);
  }
  std::uint64_t done() const { return done_; }

  /// The share of the work that is done, as far as can be foreseen: 0 … 1.
  void report(double share) const { share_ = share; }
  double share() const { return share_; }

 private:
  Recalled recalled_;
  std::atomic<bool> stopped_ = false;
  mutable std::atomic<std::uint64_t> done_ = 0;
  mutable std::atomic<double> share_ = 0;
};

}  // namespace core
