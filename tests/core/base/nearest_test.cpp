#include "core/base/text.hpp"

#include <gtest/gtest.h>

namespace core::text {
namespace {

TEST(Distance, CountsLettersPutInTakenOutAndChanged) {
  EXPECT_EQ(distance("scale", "scale"), 0u);
  EXPECT_EQ(distance("scale", "scales"), 1u);
  EXPECT_EQ(distance("scale", "sale"), 1u);
  EXPECT_EQ(distance("kitten", "sitting"), 3u);
  EXPECT_EQ(distance("", "mask"), 4u);
}

TEST(Suggestion, IsTheNearestWordUnlessAllAreFar) {
  EXPECT_EQ(suggestion("maks", {"mask", "dropout"}), "; did you mean \"mask\"?");
  EXPECT_EQ(suggestion("wombat", {"mask", "dropout"}), "");
  EXPECT_EQ(suggestion(std::string(41, 'a'), {"mask"}), "");
}

}  // namespace
}  // namespace core::text
