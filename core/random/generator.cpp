#include "core/random/generator.hpp"

#include <cmath>

namespace core::random {

Generator::Generator(std::uint64_t seed) : engine_(static_cast<std::uint32_t>(seed)) {}

std::uint32_t Generator::next_u32() { return static_cast<std::uint32_t>(engine_()); }

std::uint64_t Generator::next_u64() {
  const std::uint64_t high = next_u32();
  return high << 32 | next_u32();
}

float Generator::unit_float() { return static_cast<float>(next_u32() & 0xFFFFFFu) * 0x1p-24f; }

double Generator::unit_double() { return static_cast<double>(next_u64() & ((1ull << 53) - 1)) * 0x1p-53; }

std::vector<float> Generator::rand(std::size_t n) { return uniform(n, 0, 1); }

std::vector<float> Generator::uniform(std::size_t n, double low, double high) {
  const float a = static_cast<float>(low), width = static_cast<float>(high) - a;
  std::vector<float> values(n);
  for (float& v : values) v = std::fma(unit_float(), width, a);
  return values;
}

std::vector<float> Generator::linear_weight(std::size_t d_in, std::size_t d_out) {
  const double gain = std::sqrt(2.0 / (1 + std::sqrt(5.0) * std::sqrt(5.0)));
  const double bound = std::sqrt(3.0) * (gain / std::sqrt(static_cast<double>(d_in)));
  return uniform(d_in * d_out, -bound, bound);
}

std::vector<float> Generator::linear_bias(std::size_t d_in, std::size_t d_out) {
  const double bound = 1 / std::sqrt(static_cast<double>(d_in));
  return uniform(d_out, -bound, bound);
}

std::vector<bool> Generator::dropout_kept(std::size_t n, double rate) {
  std::vector<bool> kept(n);
  for (std::size_t i = 0; i < n; ++i) kept[i] = unit_double() < 1 - rate;
  return kept;
}

std::vector<bool> Generator::dropout_kept_mkl(std::size_t n, double rate) {
  constexpr std::uint64_t modulus = 0x7FFFFFFF, multiplier = 1132489760;  // VSL's MCG31m1
  std::uint64_t x = next_u32() % modulus;
  if (x == 0) x = 1;
  std::vector<bool> kept(n);
  for (std::size_t i = 0; i < n; ++i, x = multiplier * x % modulus)
    kept[i] = static_cast<double>(x) / static_cast<double>(modulus) < 1 - rate;
  return kept;
}

}  // namespace core::random
