#include "core/engine/kernels_of.hpp"

namespace core::attention::fast {

// Thirty-two registers: twenty-four sums, up to four vectors of keys or values, one number.
extern const Kernels avx512_kernels = KernelsOf<8, Tiles{3, 8, 4, 6}>::table("AVX-512");

}  // namespace core::attention::fast
