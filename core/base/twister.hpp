#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace core::random {

/// The stream of std::mt19937, a few times as fast: a whole state is renewed at a time, in loops that
/// compilers turn into vectors.
///
/// Matsumoto and Nishimura, Mersenne Twister, ACM TOMACS 8 (1998).
class Twister {
 public:
  explicit Twister(std::uint32_t seed);

  std::uint32_t next() {
    if (next_ == size) renew();
    return tempered_[next_++];
  }
  /// The next ones, as many as there is place for.
  void fill(std::span<std::uint32_t> numbers);

 private:
  static constexpr std::size_t size = 624;
  void renew();

  std::array<std::uint32_t, size> state_, tempered_;
  std::size_t next_ = size;
};

}  // namespace core::random
