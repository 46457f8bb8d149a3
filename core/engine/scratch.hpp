#pragma once

#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "core/engine/buffer.hpp"

namespace core::attention::fast {

/// Memory that threads borrow for a while and that is kept for the next one.
class Scratch {
 public:
  /// Numbers of any content, given back at the end.
  class Borrowed {
   public:
    Borrowed(Scratch& owner, std::size_t size) : owner_(owner), buffer_(owner.take(size)) {}
    ~Borrowed() { owner_.give_back(std::move(buffer_)); }
    Borrowed(const Borrowed&) = delete;
    Borrowed& operator=(const Borrowed&) = delete;
    double* data() { return buffer_.data(); }

   private:
    Scratch& owner_;
    Buffer buffer_;
  };

 private:
  Buffer take(std::size_t size) {
    Buffer buffer;
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) buffer = std::move(free_.back()), free_.pop_back();
    }
    if (buffer.size() < size) buffer = Buffer(size);
    return buffer;
  }
  void give_back(Buffer buffer) noexcept {
    const std::lock_guard lock(mutex_);
    try {
      free_.push_back(std::move(buffer));
    } catch (const std::bad_alloc&) {  // without a place for it, it goes
    }
  }

  std::mutex mutex_;
  std::vector<Buffer> free_;
};

}  // namespace core::attention::fast
