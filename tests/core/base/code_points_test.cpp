#include "core/base/utf8.hpp"

#include <gtest/gtest.h>

namespace core::text {
namespace {

TEST(Printable, LeavesNothingThatActsOnATerminalOrALine) {
  EXPECT_EQ(printable("\x1b[31mred\n\r\x7f"), "\\x1b[31mred\\x0a\\x0d\\x7f");
  EXPECT_EQ(printable_lines("a\n\tb\x1b[2J\r\n"), "a\n\tb\\x1b[2J\\x0d\n");
  EXPECT_EQ(printable("\u0085\u009b"), "\\x85\\x9b");
  EXPECT_EQ(printable("\u202eabc\u2066\u2028"), "\\u202eabc\\u2066\\u2028");
  EXPECT_EQ(printable("a\xff"), "a\uFFFD");
  EXPECT_EQ(printable("héads 漢 🙂"), "héads 漢 🙂");
}

TEST(IsNoncharacter, KnowsThoseOfEveryPlane) {  // The Unicode Standard, section 23.7
  for (const char32_t c : {0xFDD0, 0xFDEF, 0xFFFE, 0xFFFF, 0x1FFFE, 0x10FFFF})
    EXPECT_TRUE(is_noncharacter(c));
  for (const char32_t c : {0x41, 0xFDCF, 0xFDF0, 0xFFFD, 0x10000}) EXPECT_FALSE(is_noncharacter(c));
}

}  // namespace
}  // namespace core::text
