#include "core/base/random.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace core::random {
namespace {

TEST(Twister, GivesTheStreamOfTheStandardLibrary) {
  for (const std::uint32_t seed : {0u, 1u, 123u, 4294967295u}) {
    std::mt19937 expected(seed);
    Twister twister(seed);
    for (int i = 0; i < 5000; ++i) ASSERT_EQ(twister.next(), expected()) << seed << ", number " << i;
  }
}

TEST(Twister, FillsAnyNumberOfPlacesFromWhereItIs) {
  std::mt19937 expected(7);
  Twister twister(7);
  for (const std::size_t n : {1, 0, 623, 624, 3, 2000, 625}) {
    std::vector<std::uint32_t> numbers(n);
    twister.fill(numbers);
    for (const std::uint32_t number : numbers) ASSERT_EQ(number, expected()) << "of " << n;
    ASSERT_EQ(twister.next(), expected()) << "after " << n;
  }
}

}  // namespace
}  // namespace core::random
