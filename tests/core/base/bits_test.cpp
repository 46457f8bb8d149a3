#include "core/base/random.hpp"

#include <gtest/gtest.h>

#include <random>

namespace core::random {
namespace {

TEST(Bits, KnowEachAnswerAndThosePartsThatAreNo) {
  std::mt19937 random(3);
  std::vector<bool> expected(300);
  Bits bits(expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    expected[i] = random() % 3 != 0;
    bits.add(i, expected[i]);
  }
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(bits[i], expected[i]) << i;
  for (std::size_t first = 0; first < 140; first += 7)
    for (const std::size_t n : {0, 1, 20, 63, 64, 65, 128, 160}) {
      std::vector<std::size_t> found, no;
      bits.each_no(first, n, [&](std::size_t k) { found.push_back(k); });
      for (std::size_t k = 0; k < n; ++k)
        if (!expected[first + k]) no.push_back(k);
      EXPECT_EQ(found, no) << n << " from " << first;
    }
}

TEST(Bits, BeginAllAlike) {
  for (const bool all : {false, true}) {
    const Bits bits(70, all);
    ASSERT_EQ(bits.size(), 70u);
    for (std::size_t i = 0; i < 70; ++i) EXPECT_EQ(bits[i], all);
  }
  EXPECT_TRUE(Bits().empty());
}

}  // namespace
}  // namespace core::random
