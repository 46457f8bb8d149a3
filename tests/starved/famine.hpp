#pragma once

#include <cstddef>

namespace starved {

/// Which allocations fail: one, or one and all that follow.
enum class Lack { once, from_then_on };

/// As long as it lives, the allocation of that number fails, counted from 0 over all threads. One at a time.
class Famine {
 public:
  Famine(std::size_t number, Lack lack);
  ~Famine();
  Famine(const Famine&) = delete;
  Famine& operator=(const Famine&) = delete;

  /// Allocations since it began.
  std::size_t n_allocations() const;
};

}  // namespace starved
