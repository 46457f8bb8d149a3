#include "core/base/generator.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "core/base/float_math.hpp"

namespace core::random {
namespace {

/// Sixteen uniform numbers become sixteen normal ones (Box and Muller): the first eight give radii, the
/// others angles.
void make_normal(float* block, float mean, float standard_deviation) {
  for (int j = 0; j < 8; ++j) {
    const float radius = std::sqrt(-2.0f * log(1.0f - block[j]));
    const SineCosine angle = sine_cosine(2 * std::numbers::pi_v<float> * block[j + 8]);
    block[j] = std::fma(radius * angle.cosine, standard_deviation, mean);
    block[j + 8] = std::fma(radius * angle.sine, standard_deviation, mean);
  }
}

/// nn.Dropout takes no number when there is nothing to decide.
bool draws_nothing(double rate) {
  return rate == 0 || rate == 1;
}

}  // namespace

Generator::Generator(std::uint64_t seed) : twister_(static_cast<std::uint32_t>(seed)) {}

std::uint32_t Generator::next_u32() {
  return twister_.next();
}

std::uint64_t Generator::next_u64() {
  const std::uint64_t high = next_u32();
  return high << 32 | next_u32();
}

float Generator::unit_float() {
  return static_cast<float>(next_u32() & 0xFFFFFFu) * 0x1p-24f;
}

double Generator::unit_double() {
  return static_cast<double>(next_u64() & ((1ull << 53) - 1)) * 0x1p-53;
}

std::vector<float> Generator::rand(std::size_t n) {
  return uniform(n, 0, 1);
}

std::vector<float> Generator::uniform(std::size_t n, double low, double high) {
  const float a = static_cast<float>(low), width = static_cast<float>(high) - a;
  std::vector<float> values(n);
  for (float& v : values) v = std::fma(unit_float(), width, a);
  return values;
}

double Generator::normal_value(double mean, double standard_deviation) {
  if (cached_normal_) {
    const double z = *cached_normal_;
    cached_normal_.reset();
    return z * standard_deviation + mean;
  }
  const double first = unit_double(), second = unit_double();
  const double radius = std::sqrt(-2 * std::log1p(-second)), angle = 2 * std::numbers::pi * first;
  cached_normal_ = radius * std::sin(angle);
  return radius * std::cos(angle) * standard_deviation + mean;
}

std::vector<float> Generator::normal(std::size_t n, double mean, double standard_deviation) {
  constexpr std::size_t block = 16;
  std::vector<float> values(n);
  if (n < block) {
    for (float& v : values) v = static_cast<float>(normal_value(mean, standard_deviation));
    return values;
  }
  const float m = static_cast<float>(mean), deviation = static_cast<float>(standard_deviation);
  for (float& v : values) v = unit_float();
  for (std::size_t i = 0; i + block <= n; i += block) make_normal(&values[i], m, deviation);
  if (n % block != 0) {  // what does not fill a block: the last sixteen are drawn afresh
    float* last = &values[n - block];
    for (std::size_t j = 0; j < block; ++j) last[j] = unit_float();
    make_normal(last, m, deviation);
  }
  return values;
}

std::vector<std::int64_t> Generator::randint(std::size_t n, std::int64_t low, std::int64_t high) {
  // Unsigned arithmetic wraps around, so that every range of 64-bit numbers has a width and a way back.
  const std::uint64_t start = static_cast<std::uint64_t>(low),
                      range = static_cast<std::uint64_t>(high) - start;
  const bool wide = range >= std::uint64_t{1} << 32;
  std::vector<std::int64_t> values(n);
  for (std::int64_t& v : values)
    v = static_cast<std::int64_t>((wide ? next_u64() : next_u32()) % range + start);
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

Bits Generator::dropout_kept(std::size_t n, double rate) {
  if (draws_nothing(rate)) return Bits(n, rate == 0);
  // As whole numbers: unit_double() < 1 − rate says the same.
  const auto threshold = static_cast<std::uint64_t>(std::ceil((1 - rate) * 0x1p53));
  constexpr std::uint32_t high_bits = (1u << 21) - 1;
  std::array<std::uint32_t, 2048> words;  // the higher and the lower ones in turn
  Bits kept(n);
  for (std::size_t i = 0; i < n;) {
    const std::size_t count = std::min(n - i, words.size() / 2);
    twister_.fill({words.data(), 2 * count});
    for (std::size_t k = 0; k < count; ++k, ++i) {
      const std::uint64_t high = words[2 * k] & high_bits;
      kept.add(i, (high << 32 | words[2 * k + 1]) < threshold);
    }
  }
  return kept;
}

Bits Generator::dropout_kept_mkl(std::size_t n, double rate) {
  if (draws_nothing(rate)) return Bits(n, rate == 0);
  constexpr std::uint64_t modulus = 0x7FFFFFFF, multiplier = 1132489760;  // VSL's MCG31m1
  std::uint64_t x = next_u32() % modulus;
  if (x == 0) x = 1;
  Bits kept(n);
  for (std::size_t i = 0; i < n; ++i, x = multiplier * x % modulus)
    kept.add(i, static_cast<double>(x) / static_cast<double>(modulus) < 1 - rate);
  return kept;
}

}  // namespace core::random
