#pragma once

#include <cstddef>

namespace starved {

/// Lets the allocation of that number fail, counted from 0 over all threads, and perhaps all that follow, as
/// long as it lives. One at a time.
class AllocationFailer {
 public:
  AllocationFailer(std::size_t number, bool and_all_that_follow);
  ~AllocationFailer();
  AllocationFailer(const AllocationFailer&) = delete;
  AllocationFailer& operator=(const AllocationFailer&) = delete;

  /// Allocations since it began.
  std::size_t n_allocations() const;
};

}  // namespace starved
