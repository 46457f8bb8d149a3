#include "core/figures/words.hpp"

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

}  // namespace
