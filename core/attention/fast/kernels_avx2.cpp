#include "core/attention/fast/kernels_of.hpp"

namespace core::attention::fast {

// Sixteen registers: twelve sums, two vectors of keys or values, one number.
extern const Kernels avx2_kernels = KernelsOf<4, Tiles{2, 6, 2, 6}>::table("AVX2");

}  // namespace core::attention::fast
