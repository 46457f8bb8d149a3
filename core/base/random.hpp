#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace core::random {

/// Bit set of run-time size in 64-bit words, so that readers can scan whole words.
class Bits {
 public:
  Bits() = default;
  explicit Bits(std::size_t n, bool all = false)
      : size_(n), words_((n + width - 1) / width, all ? ~std::uint64_t{0} : 0) {}

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  bool operator[](std::size_t i) const { return words_[i / width] >> i % width & 1; }
  /// Sets bit i if `holds`; a set bit stays set.
  void add(std::size_t i, bool holds) { words_[i / width] |= std::uint64_t{holds} << i % width; }

  /// Calls no(k) in order for each k below n for which bit first + k is 0.
  template <class Call>
  void for_each_unset(std::size_t first, std::size_t n, const Call& no) const {
    for (std::size_t k = 0; k < n;) {
      const std::size_t at = first + k, in_word = at % width, count = std::min(width - in_word, n - k);
      std::uint64_t left = ~words_[at / width] >> in_word;
      if (count < width) left &= (std::uint64_t{1} << count) - 1;
      for (; left != 0; left &= left - 1) no(k + static_cast<std::size_t>(std::countr_zero(left)));
      k += count;
    }
  }

 private:
  static constexpr std::size_t width = 64;
  std::size_t size_ = 0;
  std::vector<std::uint64_t> words_;
};

/// Stream of std::mt19937, a few times faster: the whole state is renewed at once, in loops that compilers
/// vectorize.
///
/// Source: Matsumoto and Nishimura, Mersenne Twister, ACM TOMACS 8 (1998).
class Twister {
 public:
  explicit Twister(std::uint32_t seed);

  std::uint32_t next() {
    if (next_ == size) twist();
    return tempered_[next_++];
  }
  /// Fills `numbers` with the next outputs.
  void fill(std::span<std::uint32_t> numbers);

 private:
  static constexpr std::size_t size = 624;
  void twist();

  std::array<std::uint32_t, size> state_, tempered_;
  std::size_t next_ = size;
};

/// PyTorch's CPU generator after manual_seed(seed), reproduced op by op, bit for bit (float32, AVX2 builds).
///
/// Rules measured against PyTorch 1.13; each op continues the stream where the previous one stopped.
class Generator {
 public:
  explicit Generator(std::uint64_t seed);

  /// Returns the next output of mt19937.
  std::uint32_t next_u32();
  /// Returns the next two outputs, the first in the high half.
  std::uint64_t next_u64();

  /// Returns n numbers in [0, 1), like torch.rand.
  std::vector<float> rand(std::size_t n);
  /// Returns n numbers in [low, high), like tensor.uniform_(low, high).
  std::vector<float> uniform(std::size_t n, double low, double high);
  /// Returns n normal numbers, like torch.randn, torch.normal and nn.Embedding; as in PyTorch, n < 16 uses
  /// another algorithm.
  std::vector<float> normal(std::size_t n, double mean = 0, double standard_deviation = 1);
  /// Returns n integers in [low, high), like torch.randint; low must be below high.
  std::vector<std::int64_t> randint(std::size_t n, std::int64_t low, std::int64_t high);
  /// Returns the initial weight of nn.Linear(d_in, d_out) as PyTorch stores it: d_out × d_in, row-major.
  std::vector<float> linear_weight(std::size_t d_in, std::size_t d_out);
  /// Returns the initial bias of nn.Linear(d_in, d_out), sampled after its weight: d_out numbers.
  std::vector<float> linear_bias(std::size_t d_in, std::size_t d_out);
  /// Returns which of n numbers nn.Dropout(rate) keeps, in the mt19937 stream; rates 0 and 1 consume nothing.
  Bits dropout_kept(std::size_t n, double rate);
  /// Returns the same in the stream of official x86 builds with MKL before PyTorch 2.7.
  Bits dropout_kept_mkl(std::size_t n, double rate);

 private:
  float unit_float();
  double unit_double();
  double normal_value(double mean, double standard_deviation);

  Twister twister_;
  std::optional<double> cached_normal_;
};

}  // namespace core::random
