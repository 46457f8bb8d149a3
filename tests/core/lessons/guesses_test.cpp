#include "core/lessons/lessons.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/graph/attend.hpp"
#include "tests/core/lessons/tried.hpp"

namespace core::lessons {
namespace {

using testing::HasSubstr;

TEST(Guesses, AreAskedForOnceInEveryLessonAndCanBeRight) {
  const auto tried = tests::tried();
  for (const Lesson& lesson : tests::model_lessons()) {
    SCOPED_TRACE(lesson.name);
    std::size_t asked = 0;
    for (std::size_t k = 0; k < lesson.steps.size(); ++k) {
      const Step& step = lesson.steps[k];
      if (!step.predict) continue;
      ++asked;
      const attention::Model start = model_at_start(step);
      attention::Model now = start;
      for (const auto& edit : tried.at(lesson.name)[k]) now = editing::apply(now, edit);
      const attention::Trace before = attention::attend(start, 0), after = attention::attend(now, 0);
      const auto moved = moved_cells({start, before, now, after}, *step.predict, 0);
      ASSERT_FALSE(moved.empty()) << "step " << k << " asks for a stage that does not change";
      const auto& numbers = attention::info(*step.predict);
      const double by = std::abs(numbers.matrix(after, 0)(moved[0].row, moved[0].column) -
                                 numbers.matrix(before, 0)(moved[0].row, moved[0].column));
      EXPECT_DOUBLE_EQ(moved[0].by, by);
      EXPECT_THAT(verdict(moved, moved[0].row, moved[0].column), HasSubstr("You guessed it"));
      EXPECT_THAT(question(step), HasSubstr(step.try_it));
    }
    EXPECT_GE(asked, 1u);
  }
}

TEST(Guesses, AreToldByHowMuchTheyMissed) {
  const std::vector<Moved> moved{{0, 0, 0.5}, {1, 2, 0.25}};
  EXPECT_EQ(verdict(moved, 0, 0), "You guessed it: no cell changed more than yours, by 0.5.");
  EXPECT_EQ(verdict(moved, 1, 2), "Your cell changed by 0.25; row 0, column 0 changed most, by 0.5.");
  EXPECT_EQ(verdict(moved, 2, 2), "Your cell did not change; row 0, column 0 changed most, by 0.5.");
  EXPECT_EQ(verdict({}, 2, 2), "");
}

}  // namespace
}  // namespace core::lessons
