#include "core/base/text.hpp"

#include <gtest/gtest.h>

namespace core::text {
namespace {

TEST(Hexadecimal, IsAsManyDigitsAsAskedFor) {
  EXPECT_EQ(hexadecimal(0xcbf29ce484222325, 16), "cbf29ce484222325");
  EXPECT_EQ(hexadecimal(0x1b, 2), "1b");
  EXPECT_EQ(hexadecimal(0x1b, 4), "001b");
  EXPECT_EQ(hexadecimal(0x1b, 1), "b");
}

TEST(Hexadecimal, IsTwoDigitsForEachByte) {
  EXPECT_EQ(hexadecimal(std::string_view("\x00\xff/", 3)), "00ff2f");
  EXPECT_EQ(hexadecimal(std::string_view()), "");
}

}  // namespace
}  // namespace core::text
