#include "core/base/twister.hpp"

#include <algorithm>

namespace core::random {
namespace {

constexpr std::size_t size = 624, shift = 397;

/// The highest bit of one word and the others of the next, through the recurrence's matrix.
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

void Twister::renew() {
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
    if (next_ == size) renew();
    const std::size_t n = std::min(size - next_, numbers.size());
    std::copy_n(tempered_.begin() + static_cast<std::ptrdiff_t>(next_), n, numbers.begin());
    next_ += n;
    numbers = numbers.subspan(n);
  }
}

}  // namespace core::random
