#include "core/base/number.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

namespace core::text {
namespace {

std::uint64_t bits(double number) {
  return std::bit_cast<std::uint64_t>(number);
}

TEST(ToldNumber, NamesWhatFloat32HoldsByItsOwnShortestDecimal) {
  EXPECT_EQ(told_number(static_cast<double>(0.15f)), "0.15 (float32)");
  EXPECT_EQ(told_number(0.15), "0.15") << "this one is no float32";
  EXPECT_EQ(told_number(0.5), "0.5") << "the same in both";
  EXPECT_EQ(told_number(1e300), "1e+300");
  EXPECT_EQ(told_number(-std::numeric_limits<double>::infinity()), "-inf");
}

TEST(NumberText, IsTheShortestDecimal) {
  EXPECT_EQ(number_text(0.1), "0.1");
  EXPECT_EQ(number_text(-2), "-2");
  EXPECT_EQ(number_text(1.0 / 3), "0.3333333333333333");
  EXPECT_EQ(number_text(1e23), "1e+23");
  EXPECT_EQ(number_text(5e-324), "5e-324");
  EXPECT_EQ(number_text(0.43f), "0.4300000071525574");
}

TEST(NumberText, NamesWhatIsNotFinite) {
  EXPECT_EQ(number_text(INFINITY), "inf");
  EXPECT_EQ(number_text(-INFINITY), "-inf");
  EXPECT_EQ(number_text(NAN), "nan");
  EXPECT_EQ(number_text(-NAN), "nan");
}

TEST(NumberText, ReadsBackToTheSameBits) {
  std::mt19937_64 random(1);
  for (int k = 0; k < 100'000; ++k) {
    const double number = std::bit_cast<double>(random());
    if (std::isnan(number)) continue;
    const auto back = parse_number(number_text(number));
    ASSERT_TRUE(back) << number_text(number);
    ASSERT_EQ(bits(*back), bits(number)) << number_text(number);
  }
  EXPECT_EQ(bits(*parse_number(number_text(-0.0))), bits(-0.0));
  EXPECT_TRUE(std::isnan(*parse_number("nan")));
}

TEST(ParseNumber, AsksForTheWholeText) {
  for (const char* text : {"", " 1", "1 ", "1,5", "1.5x", "0x10", "+1", "1e", "--1", "-", ".", "e5",
                           "infinity", "NAN", "nan(1)", "1e999"})
    EXPECT_FALSE(parse_number(text)) << text;
}

TEST(ParseNumber, TakesWhatIsTooSmallForFloat64AsZero) {  // as strtod and NumPy do
  for (const char* text :
       {"1e-400", "0.0001e-320", "123e-400", "1e-99999999999999999999", "0.00e99999999999999999999"}) {
    ASSERT_TRUE(parse_number(text)) << text;
    EXPECT_EQ(bits(*parse_number(text)), bits(0.0)) << text;
    EXPECT_FALSE(is_beyond_float64(text)) << text;
  }
  EXPECT_EQ(bits(*parse_number("-1e-400")), bits(-0.0));
  for (const char* text : {"1e400", "-1e400", "123e308", "0.001e99999999999999999999"}) {
    EXPECT_FALSE(parse_number(text)) << text;
    EXPECT_TRUE(is_beyond_float64(text)) << text;
  }
  for (const char* text : {"1e308", "x", "", "1e", "inf"}) EXPECT_FALSE(is_beyond_float64(text)) << text;
}

TEST(ParseWholeNumber, AsksForDigitsAlone) {
  EXPECT_EQ(parse_whole_number("0"), 0u);
  EXPECT_EQ(parse_whole_number("007"), 7u);
  EXPECT_EQ(parse_whole_number("18446744073709551615"), UINT64_MAX);
  for (const char* text : {"", "-1", "+1", " 1", "1 ", "1.0", "1e3", "0x1", "x", "18446744073709551616"})
    EXPECT_FALSE(parse_whole_number(text)) << text;
}

TEST(TakeWholeNumber, LeavesWhatComesAfter) {
  std::string_view text = "12,3";
  EXPECT_EQ(take_whole_number(text), 12u);
  EXPECT_EQ(text, ",3");
  EXPECT_FALSE(take_whole_number(text));
  EXPECT_EQ(text, ",3");
  std::string_view large = "18446744073709551616 ";
  EXPECT_FALSE(take_whole_number(large));
  EXPECT_EQ(large, "18446744073709551616 ");
}

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
