#include "core/out/words.hpp"

#include <gtest/gtest.h>

using namespace core::figures;

namespace {

TEST(TextWidth, IsThatOfDejaVu) {
  EXPECT_NEAR(text_width("Your", 13), 13 * (611 + 612 + 634 + 411) / 1000.0, 1e-9);
  EXPECT_NEAR(text_width("0.00", 10, true), 24.08, 1e-9);
  EXPECT_NEAR(text_width("漢", 10), 10, 1e-9);
}

TEST(Shortened, FitsAndNeverCutsACharacter) {
  EXPECT_EQ(shortened("step", 13, 100), "step");
  const std::string cut = shortened("ééééééééé", 10, 40);
  EXPECT_LE(text_width(cut, 10), 40);
  EXPECT_EQ(cut, "éééé…");
}

TEST(Shortened, DoesNotReadOnWhereNothingFits) {
  const std::string token(10'000'000, 'x');  // a quadratic one would take days
  EXPECT_EQ(shortened(token, 10, 40), "xxxxx…");
}

TEST(Drawable, HasNeitherMarksOfDirectionNorWhatIsNoCharacter) {
  EXPECT_EQ(drawable("a\u202eb\u009b\uFFFE\xff"), "a�b���");
}

TEST(Drawable, ShowsWhatHasNoShape) {
  EXPECT_EQ(drawable("a\nb\tc\x01"), "a↵b⇥c�");
}

TEST(FormulaRuns, LowerWhatStandsBehindAnUnderscore) {
  const auto runs = formula_runs("X·W_q + b_12", 10, {});
  ASSERT_EQ(runs.size(), 4u);
  EXPECT_EQ(runs[0].text, "X·W");
  EXPECT_EQ(runs[1].text, "q");
  EXPECT_GT(runs[1].lowered, 0);
  EXPECT_EQ(runs[2].lowered, 0);
  EXPECT_EQ(runs[3].text, "12");
}

TEST(LabelStep, DoublesUntilThereIsRoom) {
  EXPECT_EQ(label_step(20, 14), 1u);
  EXPECT_EQ(label_step(7, 14), 2u);
  EXPECT_EQ(label_step(3, 14), 8u);
}

TEST(EndText, HasAsManyDecimalsAsSayAnything) {
  EXPECT_EQ(end_text(0, true), "0");
  EXPECT_EQ(end_text(-2, true), "−2");
  EXPECT_EQ(end_text(2, false), "2.00");
  EXPECT_EQ(end_text(1234.5, true), "1234");
  EXPECT_EQ(end_text(123.45, true), "123.5");
  EXPECT_EQ(end_text(0.01234, false), "0.0123");
  EXPECT_EQ(end_text(1.25e7, true), "1.2e+07");
}

}  // namespace
