#include "core/base/float_math.hpp"

#include <cmath>
#include <initializer_list>

namespace core::random {
namespace {

/// A polynomial by Horner's rule, the highest power first, each step fused.
float polynomial(float x, std::initializer_list<float> coefficients) {
  float y = 0;
  for (const float c : coefficients) y = std::fma(y, x, c);
  return y;
}

}  // namespace

float log(float x) {
  constexpr float square_root_of_half = 0.707106781186547524f;
  constexpr float ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;
  int whole = 0;
  float m = std::frexp(x, &whole);  // x = m · 2^whole, then m is brought close to 1
  if (m < square_root_of_half) {
    --whole;
    m = m - 1 + m;
  } else {
    m = m - 1;
  }
  const float exponent = static_cast<float>(whole), square = m * m;
  float y = polynomial(
      m, {7.0376836292e-2f, -1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f, 1.4249322787e-1f,
          -1.6668057665e-1f, 2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f});
  y = y * m;
  y = std::fma(y, square, exponent * ln2_low);  // only the first product is fused
  y = std::fma(-square, 0.5f, y);
  return std::fma(exponent, ln2_high, m + y);
}

SineCosine sine_cosine(float x) {
  constexpr float four_over_pi = 1.27323954473516f;
  const float magnitude = std::fabs(x);
  // The octant, made even: what is left lies within π/4 of a multiple of π/2.
  const int octant = (static_cast<int>(magnitude * four_over_pi) + 1) & ~1;
  const float o = static_cast<float>(octant);
  float r = std::fma(o, -0.78515625f, magnitude);  // π/4 in three parts
  r = std::fma(o, -2.4187564849853515625e-4f, r);
  r = std::fma(o, -3.77489497744594108e-8f, r);

  const float square = r * r;
  float c = polynomial(square, {2.443315711809948e-5f, -1.388731625493765e-3f, 4.166664568298827e-2f});
  c = c * square;
  c = std::fma(c, square, -(square * 0.5f)) + 1;
  float s = polynomial(square, {-1.9515295891e-4f, 8.3321608736e-3f, -1.6666654611e-1f});
  s = s * square;
  s = std::fma(s, r, r);

  const bool swapped = (octant & 2) != 0;
  const bool sine_negative = ((octant & 4) != 0) != (x < 0);
  const bool cosine_negative = ((octant - 2) & 4) == 0;
  const float sine = swapped ? c : s, cosine = swapped ? s : c;
  return {sine_negative ? -sine : sine, cosine_negative ? -cosine : cosine};
}

}  // namespace core::random
