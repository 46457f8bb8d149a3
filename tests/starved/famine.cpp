#include "tests/starved/famine.hpp"

#include <link.h>
#include <zip.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace starved {
namespace {

std::atomic<bool> is_armed{false}, goes_on{false};
std::atomic<std::size_t> n_before{0}, count{0};

/// Whether this allocation is to fail.
bool fails() {
  if (!is_armed.load(std::memory_order_relaxed)) return false;
  const std::size_t number = count.fetch_add(1, std::memory_order_relaxed);
  return number == n_before || (goes_on && number > n_before);
}

/// The addresses that a library's code is at.
struct Code {
  std::uintptr_t begin = 0, end = 0;
  bool has(const void* address) const {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    return begin <= at && at < end;
  }
};

/// The code of the library that a function is of.
Code code_around(const void* function) {
  struct Search {
    const void* function;
    Code found = {};
  } search{function};
  const auto look = [](dl_phdr_info* library, std::size_t, void* into) {
    auto& [wanted, found] = *static_cast<Search*>(into);
    for (int k = 0; k < library->dlpi_phnum; ++k) {
      const auto& part = library->dlpi_phdr[k];
      const std::uintptr_t begin = library->dlpi_addr + part.p_vaddr;
      const Code code{begin, begin + part.p_memsz};
      if (part.p_type == PT_LOAD && code.has(wanted)) found = code;
    }
    return 0;
  };
  ::dl_iterate_phdr(look, &search);
  return search.found;
}

const Code libzip = code_around(reinterpret_cast<const void*>(&zip_open));

/// Whether what a library asks malloc for is to fail: that of libzip can, which reads and writes archives.
bool fails_for(const void* caller) {
  return is_armed.load(std::memory_order_relaxed) && libzip.has(caller) && fails();
}

}  // namespace

Famine::Famine(std::size_t number, Lack lack) {
  n_before = number;
  goes_on = lack == Lack::from_then_on;
  count = 0;
  is_armed = true;
}

Famine::~Famine() {
  is_armed = false;
}

std::size_t Famine::n_allocations() const {
  return count;
}

}  // namespace starved

// What C++ asks for.
void* operator new(std::size_t size) {
  void* memory = starved::fails() ? nullptr : std::malloc(size > 0 ? size : 1);
  if (!memory) throw std::bad_alloc();
  return memory;
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {  // as std::stable_sort asks
  return starved::fails() ? nullptr : std::malloc(size > 0 ? size : 1);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* memory, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);

void* malloc(std::size_t size) {
  return starved::fails_for(__builtin_return_address(0)) ? nullptr : __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) {
  return starved::fails_for(__builtin_return_address(0)) ? nullptr : __libc_calloc(count, size);
}
void* realloc(void* memory, std::size_t size) {
  return starved::fails_for(__builtin_return_address(0)) ? nullptr : __libc_realloc(memory, size);
}

// What Armadillo and the engine's buffers ask for.

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
