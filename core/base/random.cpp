#include "core/base/random.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <numbers>

namespace core::random {
namespace {

constexpr std::size_t size = 624, shift = 397;

/// Combines the highest bit of a word with the other bits of the next and applies the twist matrix.
constexpr std::uint32_t twisted(std::uint32_t word, std::uint32_t next) {
  const std::uint32_t joined = (word & 0x80000000u) | (next & 0x7fffffffu);
  return (joined >> 1) ^ ((0u - (joined & 1u)) & 0x9908b0dfu);
}

constexpr std::uint32_t tempered(std::uint32_t x) {
  x ^= x >> 11;
  x ^= (x << 7) & 0x9d2c5680u;
  x ^= (x << 15) & 0xefc60000u;
  return x ^ (x >> 18);
}

}  // namespace

Twister::Twister(std::uint32_t seed) {
  state_[0] = seed;
  for (std::uint32_t i = 1; i < size; ++i)
    state_[i] = 1812433253u * (state_[i - 1] ^ (state_[i - 1] >> 30)) + i;
}

void Twister::twist() {
  std::uint32_t* const s = state_.data();
  for (std::size_t i = 0; i < size - shift; ++i) s[i] = s[i + shift] ^ twisted(s[i], s[i + 1]);
  for (std::size_t i = size - shift; i < size - 1; ++i)
    s[i] = s[i - (size - shift)] ^ twisted(s[i], s[i + 1]);
  s[size - 1] = s[shift - 1] ^ twisted(s[size - 1], s[0]);
  for (std::size_t i = 0; i < size; ++i) tempered_[i] = tempered(s[i]);
  next_ = 0;
}

void Twister::fill(std::span<std::uint32_t> numbers) {
  while (!numbers.empty()) {
    if (next_ == size) twist();
    const std::size_t n = std::min(size - next_, numbers.size());
    std::copy_n(tempered_.begin() + static_cast<std::ptrdiff_t>(next_), n, numbers.begin());
    next_ += n;
    numbers = numbers.subspan(n);
  }
}

namespace {

// Single-precision logarithm, sine and cosine, equal to the last bit to vectorized AVX2 builds of PyTorch.
// The polynomials are from the Cephes library (Moshier); libm's results differ in the last bits. Every fused
// step is written as std::fma, so that compiler flags do not matter.

/// Evaluates a polynomial by Horner's rule, highest power first, with fused steps.
float polynomial(float x, std::initializer_list<float> coefficients) {
  float y = 0;
  for (const float c : coefficients) y = std::fma(y, x, c);
  return y;
}

/// Returns the natural logarithm of a positive, normal number.
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

struct SineCosine {
  float sine = 0, cosine = 1;
};

/// Returns the sine and cosine of an angle in radians, |x| < 8192.
SineCosine sine_cosine(float x) {
  constexpr float four_over_pi = 1.27323954473516f;
  const float magnitude = std::fabs(x);
  // The octant, rounded up to even, so that the remainder lies within ±π/4.
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

/// Turns sixteen uniform numbers into sixteen normal ones (Box and Muller): the first eight give radii, the
/// others angles.
void box_muller(float* block, float mean, float standard_deviation) {
  for (int j = 0; j < 8; ++j) {
    const float radius = std::sqrt(-2.0f * log(1.0f - block[j]));
    const SineCosine angle = sine_cosine(2 * std::numbers::pi_v<float> * block[j + 8]);
    block[j] = std::fma(radius * angle.cosine, standard_deviation, mean);
    block[j + 8] = std::fma(radius * angle.sine, standard_deviation, mean);
  }
}

/// Returns whether nn.Dropout consumes no random numbers, as there is nothing to decide.
bool consumes_nothing(double rate) {
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
  for (std::size_t i = 0; i + block <= n; i += block) box_muller(&values[i], m, deviation);
  if (n % block != 0) {  // the last sixteen are resampled, as in PyTorch
    float* last = &values[n - block];
    for (std::size_t j = 0; j < block; ++j) last[j] = unit_float();
    box_muller(last, m, deviation);
  }
  return values;
}

std::vector<std::int64_t> Generator::randint(std::size_t n, std::int64_t low, std::int64_t high) {
  // Unsigned arithmetic wraps around, so it can represent every range of 64-bit integers.
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
  if (consumes_nothing(rate)) return Bits(n, rate == 0);
  // Integer form of unit_double() < 1 − rate.
  const auto threshold = static_cast<std::uint64_t>(std::ceil((1 - rate) * 0x1p53));
  constexpr std::uint32_t high_bits = (1u << 21) - 1;
  std::array<std::uint32_t, 2048> words;  // high and low words alternate
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
  if (consumes_nothing(rate)) return Bits(n, rate == 0);
  constexpr std::uint64_t modulus = 0x7FFFFFFF, multiplier = 1132489760;  // VSL's MCG31m1
  std::uint64_t x = next_u32() % modulus;
  if (x == 0) x = 1;
  Bits kept(n);
  for (std::size_t i = 0; i < n; ++i, x = multiplier * x % modulus)
    kept.add(i, static_cast<double>(x) / static_cast<double>(modulus) < 1 - rate);
  return kept;
}

}  // namespace core::random
