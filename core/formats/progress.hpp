#pragma once

#include <atomic>
#include <cstdint>

#include "core/error.hpp"

namespace core::formats {

/// A long reading was stopped by whoever asked for it.
class Cancelled : public Error {
 public:
  Cancelled() : Error("cancelled") {}
};

/// What a long reading tells whoever waits for it, and is told by them; safe between threads.
class Progress {
 public:
  /// Makes the reading throw Cancelled at its next step.
  void cancel() { cancelled_ = true; }
  /// Bytes read so far.
  std::uint64_t bytes() const { return bytes_; }

  /// Counts bytes as read; throws Cancelled once that was asked for.
  void add(std::uint64_t bytes) {
    if (cancelled_) throw Cancelled();
    bytes_ += bytes;
  }

 private:
  std::atomic<std::uint64_t> bytes_ = 0;
  std::atomic<bool> cancelled_ = false;
};

}  // namespace core::formats
