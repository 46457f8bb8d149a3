#pragma once

#include <bit>
#include <cstdint>

namespace core::transformer {

/// e to the power of x, to about one unit in the last place of float32; below −87 it is that of −87, and NaN
/// stays.
///
/// It has no branches, so that compilers make vectors of loops of it. Source: Cephes, expf.
inline float exponential(float x) {
  const float high = x > 88 ? 88 : x, inside = high < -87 ? -87 : high;
  const float near = inside == inside ? inside * 1.44269504f : 0;  // NaN has no whole number
  const auto whole = static_cast<std::int32_t>(near + (near < 0 ? -0.5f : 0.5f));
  const auto power = static_cast<float>(whole);
  const float rest = (inside - power * 0.693359375f) + power * 2.12194440e-4f;
  float sum = 1.9875691500e-4f;
  sum = sum * rest + 1.3981999507e-3f;
  sum = sum * rest + 8.3334519073e-3f;
  sum = sum * rest + 4.1665795894e-2f;
  sum = sum * rest + 1.6666665459e-1f;
  sum = sum * rest + 5.0000001201e-1f;
  sum = sum * rest * rest + rest + 1;
  return sum * std::bit_cast<float>((whole + 127) << 23);
}

}  // namespace core::transformer
