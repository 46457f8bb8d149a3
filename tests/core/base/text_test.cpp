#include "core/base/text.hpp"

#include <gtest/gtest.h>

#include <string>

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

/// Subscripts in brackets.
std::string marked(std::string_view formula) {
  std::string text;
  for (const FormulaPiece& piece : formula_pieces(formula))
    text += piece.subscript ? "[" + std::string(piece.text) + "]" : "(" + std::string(piece.text) + ")";
  return text;
}

TEST(FormulaPieces, LowerALetterOrAllDigitsBehindAnUnderscore) {
  EXPECT_EQ(marked("X·W_q + b_12"), "(X·W)[q]( + b)[12]");
  EXPECT_EQ(marked("b_12x"), "(b)[12](x)");
  EXPECT_EQ(marked("a_bc"), "(a)[b](c)");
  EXPECT_EQ(marked("_1_2"), "[1][2]");
  EXPECT_EQ(marked("softmax"), "(softmax)");
  EXPECT_EQ(marked("ends_"), "(ends)");
  EXPECT_EQ(marked(""), "");
}

}  // namespace
}  // namespace core::text
