#include "core/base/text.hpp"

#include <gtest/gtest.h>

#include <string>

namespace core::text {
namespace {

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
