#include "core/engine/kernels.hpp"

#include <array>

namespace core::attention::fast {

extern const Kernels plain_kernels;
#ifdef ATTNSCOPE_X86
extern const Kernels avx2_kernels, avx512_kernels;
#endif

namespace {

struct Choice {
  std::array<Kernels, 3> kernels;
  std::size_t count = 0;
};

Choice runnable() {
  Choice choice;
#ifdef ATTNSCOPE_X86
  if (__builtin_cpu_supports("avx512f")) choice.kernels[choice.count++] = avx512_kernels;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    choice.kernels[choice.count++] = avx2_kernels;
#endif
  choice.kernels[choice.count++] = plain_kernels;
  return choice;
}

}  // namespace

std::span<const Kernels> kernels_of_this_processor() {
  static const Choice choice = runnable();
  return {choice.kernels.data(), choice.count};
}

}  // namespace core::attention::fast
