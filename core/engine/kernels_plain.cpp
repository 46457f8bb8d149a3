#include "core/engine/kernels_of.hpp"

namespace core::attention::fast {

// Vectors of two: SSE2 on every x86-64, NEON on every arm64.
extern const Kernels plain_kernels = KernelsOf<2, Tiles{2, 6, 2, 6}>::table("plain");

}  // namespace core::attention::fast
