#include "app/ui/widgets/editor/matrix_editor.hpp"

#include <gtest/gtest.h>

#include "tests/support/error_of.hpp"

namespace {

using app::widgets::pasted_numbers;
using support::error_of;

void expect_block(std::string_view text) {
  const arma::mat expected{{1, -2.5}, {3e2, 4}};
  EXPECT_TRUE(arma::approx_equal(pasted_numbers(text), expected, "absdiff", 0)) << text;
}

TEST(PastedNumbers, UnderstandsTabsCommasSemicolonsAndBlanks) {
  expect_block("1\t-2.5\n3e2\t4\n");
  expect_block("1,-2.5\r\n300,4\r\n");
  expect_block("1;-2,5\n300;4");
  expect_block("  1   -2.5\n300 4  \n\n");
  expect_block("1, −2.5\n+300, 4");
}

TEST(PastedNumbers, UnderstandsWhatPyTorchAndNumPyPrint) {
  expect_block("tensor([[  1.0000,  -2.5000],\n        [300.0000,   4.0000]], grad_fn=<MulBackward0>)");
  expect_block("array([[1., -2.5],\n       [3e+02, 4.]])");
  expect_block("[[  1.   -2.5]\n [300.    4. ]]");
  expect_block("[[1, -2.5], [300, 4]]");
}

TEST(PastedNumbers, LeavesOutTheNamesOfASpreadsheet) {
  expect_block("\tThe\tdog\nThe\t1\t-2.5\ndog\t300\t4\n");
}

TEST(PastedNumbers, NamesLineAndColumnOfWhatIsNoNumber) {
  EXPECT_EQ(error_of([] { pasted_numbers("1\t2\n3\tx"); }),
            "pasted text: line 2, column 2: expected a number, got \"x\"");
  EXPECT_EQ(error_of([] { pasted_numbers("1,nan"); }),
            "pasted text: row 1, column 2: expected a finite number, got nan");
  EXPECT_EQ(error_of([] { pasted_numbers("1,,3"); }),
            "pasted text: line 1, column 2: expected a number, got \"\"");
  EXPECT_EQ(error_of([] { pasted_numbers("[[[1]]]"); }),
            "pasted text: expected a matrix, got a tensor of shape [1, 1, 1]");
}

TEST(PastedNumbers, RefusesRowsOfUnequalLengthAndNothing) {
  EXPECT_EQ(error_of([] { pasted_numbers("1 2\n3"); }),
            "pasted text: line 2: expected 2 fields as in line 1, got 1");
  EXPECT_EQ(error_of([] { pasted_numbers(" \n"); }), "pasted text: expected numbers, got nothing");
  EXPECT_EQ(error_of([] { pasted_numbers("[]"); }), "pasted text: expected numbers, got nothing");
}

}  // namespace
