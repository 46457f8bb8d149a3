#include "core/engine/buffer.hpp"

#ifdef __linux__
#include <sys/mman.h>
#endif

#include <cstdlib>
#include <new>

namespace core::attention::fast {
namespace {

constexpr std::size_t cache_line = 64, large_page = std::size_t{2} << 20;

}  // namespace

Buffer::Buffer(std::size_t size) : size_(size) {
  if (size == 0) return;
  const std::size_t bytes = size * sizeof(double), unit = bytes < large_page ? cache_line : large_page;
  const std::size_t rounded = (bytes + unit - 1) / unit * unit;
  void* memory = std::aligned_alloc(unit, rounded);
  if (memory == nullptr) throw std::bad_alloc();
#ifdef __linux__
  if (unit == large_page)
    ::madvise(memory, rounded, MADV_HUGEPAGE);  // a wish: rows of many pages are read at once
#endif
  numbers_.reset(static_cast<double*>(memory));
}

void Buffer::Free::operator()(double* numbers) const {
  std::free(numbers);
}

}  // namespace core::attention::fast
