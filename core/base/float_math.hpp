#pragma once

/// Logarithm, sine and cosine in single precision, to the last bit as vectorised AVX2 builds of PyTorch
/// compute them.
///
/// The polynomials are those of the Cephes library (Moshier); libm's results differ in the last bits. Every
/// fused step is written as std::fma, so that compiler flags do not matter.
namespace core::random {

/// The natural logarithm of a positive, normal number.
float log(float x);

struct SineCosine {
  float sine = 0, cosine = 1;
};

/// Both functions of an angle in radians, |x| < 8192.
SineCosine sine_cosine(float x);

}  // namespace core::random
