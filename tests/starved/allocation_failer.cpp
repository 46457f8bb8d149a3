#include "tests/starved/allocation_failer.hpp"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <new>

namespace starved {
namespace {

std::atomic<bool> is_armed{false}, goes_on{false};
std::atomic<std::size_t> failing{0}, count{0};

/// Counts an allocation and returns whether it must fail.
bool fails() {
  if (!is_armed.load(std::memory_order_relaxed)) return false;
  const std::size_t number = count.fetch_add(1, std::memory_order_relaxed);
  return number == failing || (goes_on && number > failing);
}

}  // namespace

AllocationFailer::AllocationFailer(std::size_t number, bool and_all_that_follow) {
  failing = number;
  goes_on = and_all_that_follow;
  count = 0;
  is_armed = true;
}

AllocationFailer::~AllocationFailer() {
  is_armed = false;
}

std::size_t AllocationFailer::n_allocations() const {
  return count;
}

}  // namespace starved

// Allocations of C++.
void* operator new(std::size_t size) {
  void* memory = starved::fails() ? nullptr : std::malloc(size > 0 ? size : 1);
  if (!memory) throw std::bad_alloc();
  return memory;
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {  // used by std::stable_sort
  return starved::fails() ? nullptr : std::malloc(size > 0 ? size : 1);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

// Allocations of Armadillo and the engine's buffers.
extern "C" {
void* __libc_memalign(std::size_t alignment, std::size_t size);

void* aligned_alloc(std::size_t alignment, std::size_t size) {
  if (!starved::fails()) return __libc_memalign(alignment, size);
  errno = ENOMEM;
  return nullptr;
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t size) {
  void* const got = aligned_alloc(alignment, size);
  if (!got) return ENOMEM;
  *memory = got;
  return 0;
}
}

#endif
