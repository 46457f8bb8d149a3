#include "core/engine/kernels_of.hpp"

namespace core::attention::fast {

// Sixteen registers: twelve sums, two or three vectors of values or keys, one number.
extern const Kernels avx2_kernels = KernelsOf<4, Tiles{3, 4, 2, 6}>::table("AVX2");

}  // namespace core::attention::fast
