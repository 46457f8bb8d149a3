#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace core::random {

/// Yes or no, many times: 64 answers to a word, so that whoever reads many can read them by words.
class Bits {
 public:
  Bits() = default;
  explicit Bits(std::size_t n, bool all = false)
      : size_(n), words_((n + width - 1) / width, all ? ~std::uint64_t{0} : 0) {}

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  bool operator[](std::size_t i) const { return words_[i / width] >> i % width & 1; }
  /// Yes to number i when it holds; what was yes stays so.
  void add(std::size_t i, bool holds) { words_[i / width] |= std::uint64_t{holds} << i % width; }

  /// Calls no(k) for each k below n, in order, for which number first + k is no.
  template <class Call>
  void each_no(std::size_t first, std::size_t n, const Call& no) const {
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

}  // namespace core::random
