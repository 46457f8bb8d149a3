#pragma once

#include <cstddef>

namespace starved {

/// Makes one allocation fail, counted from 0 over all threads, and optionally all later ones, while it lives.
/// Only one may exist at a time.
class AllocationFailer {
 public:
  AllocationFailer(std::size_t number, bool and_all_that_follow);
  ~AllocationFailer();
  AllocationFailer(const AllocationFailer&) = delete;
  AllocationFailer& operator=(const AllocationFailer&) = delete;

  /// Returns the number of allocations since the construction.
  std::size_t n_allocations() const;
};

}  // namespace starved
