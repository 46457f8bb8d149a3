#include "core/base/number.hpp"

#include <gtest/gtest.h>

namespace core::text {
namespace {

TEST(CellText, UnitLetsSmallNumbersBeRead) {
  EXPECT_EQ(unit_for(3), 1);
  EXPECT_EQ(unit_for(0), 1);
  EXPECT_EQ(unit_for(0.005), 0.001);
  EXPECT_EQ(unit_for(2e-5), 0.001);
  EXPECT_EQ(unit_for(1.2e-7), 1e-7);
  EXPECT_EQ(unit_for(9.9e-6), 1e-6);
  EXPECT_GT(unit_for(5e-324), 0);
  EXPECT_EQ(unit_words(0.001), "0.001");
  EXPECT_EQ(unit_words(1e-7), "1e−7");
  EXPECT_EQ(unit_words(1e-16), "1e−16");
}

TEST(CellText, DifferencesOfRoundingAreReadable) {
  const arma::mat difference{{1.23e-7, -4.5e-8}, {0, 9e-10}};
  const NumberFormat format = choose_format(difference, {0, 2, 0, 2}, 5);
  EXPECT_EQ(format.unit, 1e-7);
  EXPECT_EQ(cell_text(difference(0, 0), format, false), "1.23");
  EXPECT_EQ(cell_text(difference(0, 1), format, false), "−0.45");
  EXPECT_EQ(cell_text(difference(1, 0), format, false), "0");
}

TEST(CellText, SharesAreNeverRoundedTo0Or1) {
  EXPECT_EQ(share_text(0.5, 2), "0.50");
  EXPECT_EQ(share_text(1, 2), "1.00");
  EXPECT_EQ(share_text(0, 2), "0.00");
  EXPECT_EQ(share_text(0.996, 2), "0.996");
  EXPECT_EQ(share_text(0.99996, 4), "0.99996");
  EXPECT_EQ(share_text(1 - 1e-9, 4), "≈1");
  EXPECT_EQ(share_text(0.004, 2), "0.004");
  EXPECT_EQ(share_text(1e-12, 2), "≈0");
}

}  // namespace
}  // namespace core::text
