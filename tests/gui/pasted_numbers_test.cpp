#include "app/widgets/pasted_numbers.hpp"

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

TEST(PastedNumbers, NamesLineAndColumnOfWhatIsNoNumber) {
  EXPECT_EQ(error_of([] { pasted_numbers("1\t2\n3\tx"); }),
            "pasted text, line 2, column 2: expected a number, found \"x\"");
  EXPECT_EQ(error_of([] { pasted_numbers("1,nan"); }),
            "pasted text, line 1, column 2: expected a number, found \"nan\"");
  EXPECT_EQ(error_of([] { pasted_numbers("1,,3"); }),
            "pasted text, line 1, column 2: expected a number, found \"\"");
}

TEST(PastedNumbers, RefusesRowsOfUnequalLengthAndNothing) {
  EXPECT_EQ(error_of([] { pasted_numbers("1 2\n3"); }),
            "pasted text, line 2: expected 2 numbers as in line 1, found 1");
  EXPECT_EQ(error_of([] { pasted_numbers(" \n"); }), "pasted text: expected numbers, found nothing");
}

}  // namespace
