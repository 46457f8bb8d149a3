#include "core/base/text.hpp"

#include <gtest/gtest.h>

namespace core::text {
namespace {

TEST(Trimmed, TakesBlanksOffBothEndsAlone) {
  EXPECT_EQ(trimmed(" \ta b\t"), "a b");
  EXPECT_EQ(trimmed("ab"), "ab");
  EXPECT_EQ(trimmed(" \t "), "");
  EXPECT_EQ(trimmed(""), "");
}

TEST(Lower, LeavesWhatIsNotAscii) {
  EXPECT_EQ(lower("D_Model É9"), "d_model É9");
}

TEST(ComesBefore, CountsNumbersAsNumbers) {
  EXPECT_TRUE(comes_before("h.2.attn", "h.10.attn"));
  EXPECT_FALSE(comes_before("h.10.attn", "h.2.attn"));
  EXPECT_TRUE(comes_before("h.9", "h.9a"));
  EXPECT_TRUE(comes_before("h.12.a", "h.13.a"));
  EXPECT_TRUE(comes_before("h.2", "h.a"));
  EXPECT_FALSE(comes_before("h.2", "h.2"));
  EXPECT_TRUE(comes_before("", "a"));
}

}  // namespace
}  // namespace core::text
