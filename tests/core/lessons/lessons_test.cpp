#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <cmath>

#include <algorithm>
#include <cctype>
#include <set>

#include "core/base/error.hpp"
#include "core/graph/attend.hpp"
#include "core/graph/stages.hpp"
#include "core/lessons/exhibits.hpp"
#include "core/lessons/lessons.hpp"
#include "core/lessons/measures.hpp"
#include "tests/core/editing/random_edit.hpp"
#include "tests/core/lessons/tried.hpp"

namespace core::lessons {
namespace {

using attention::Model;
using editing::Random;
using testing::HasSubstr;

/// Whether a step is done, and what was seen, with the model at its start and after some edits.
bool done(const Step& step, const Model& start, const Model& model) {
  const attention::Trace before = attention::attend(start), trace = attention::attend(model);
  return is_done(step, Moment{start, before, model, trace});
}

Model edited(Model model, const std::vector<editing::Edit>& edits) {
  for (const editing::Edit& edit : edits) model = editing::apply(model, edit);
  return model;
}

std::string place(const Lesson& lesson, std::size_t step) {
  return std::string(lesson.name) + ", step " + std::to_string(step) + ", " + lesson.steps[step].title;
}

TEST(Lessons, AreNotDoneBeforeTheyAreTriedAndDoneAfterwards) {
  const auto edits = tests::tried();
  for (const Lesson& lesson : tests::model_lessons()) {
    ASSERT_TRUE(edits.contains(lesson.name)) << lesson.name;
    ASSERT_EQ(edits.at(lesson.name).size(), lesson.steps.size()) << lesson.name;
    for (std::size_t k = 0; k < lesson.steps.size(); ++k) {
      const Step& step = lesson.steps[k];
      const Model start = model_at_start(step);
      EXPECT_FALSE(done(step, start, start)) << place(lesson, k);
      EXPECT_TRUE(done(step, start, edited(start, edits.at(lesson.name)[k]))) << place(lesson, k);
    }
  }
}

TEST(Lessons, AreNotDoneByAnyOtherSmallChange) {
  // A renamed token changes no number: only steps that ask for another text may take it.
  std::size_t taken = 0;
  for (const Lesson& lesson : tests::model_lessons())
    for (const Step& step : lesson.steps) {
      const Model start = model_at_start(step);
      if (done(step, start, edited(start, {editing::RenameToken{0, 0, "renamed"}}))) ++taken;
    }
  EXPECT_EQ(taken, 2u);  // the pairs of a typed sentence and the names of 003
}

TEST(Lessons, PointAtStagesThatTheirModelHas) {
  for (const Lesson& lesson : tests::model_lessons())
    for (std::size_t k = 0; k < lesson.steps.size(); ++k) {
      const Step& step = lesson.steps[k];
      EXPECT_GE(step.focus.size(), 1u) << place(lesson, k);
      const Model start = model_at_start(step);
      for (const std::string& name : step.focus) {
        if (!name.starts_with("strip/")) continue;
        const attention::StageInfo* stage = attention::find_stage(name.substr(6));
        ASSERT_NE(stage, nullptr) << place(lesson, k) << ": " << name;
        EXPECT_TRUE(stage->present(start)) << place(lesson, k) << ": " << name;
      }
    }
}

TEST(Glossary, FindsATermWhateverItsCapitals) {
  ASSERT_NE(find_term("softmax"), nullptr);
  EXPECT_EQ(find_term("Softmax"), find_term("softmax"));
  EXPECT_EQ(std::string(find_term("D_HEAD")->word), "d_head");
  EXPECT_EQ(find_term("no such word"), nullptr);
  EXPECT_EQ(find_term("soft"), nullptr);
}

TEST(Glossary, ExplainsEveryWordOfTheNotebooksGlossary) {
  for (const char* word :
       {"token", "embedding", "query", "key", "value", "dot product", "softmax", "mask", "dropout"})
    EXPECT_NE(find_term(word), nullptr) << word;
}

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

TEST(LessonNumber, HasFourDecimalsUnlessFewerSayItAllOrItIsTiny) {
  EXPECT_EQ(number(0.17912), "0.1791");
  EXPECT_EQ(number(-1.5), "−1.5");
  EXPECT_EQ(number(36), "36");
  EXPECT_EQ(number(300), "300");
  EXPECT_EQ(number(1 - 1e-9), "1.0000");
  EXPECT_EQ(number(0), "0");
  EXPECT_EQ(number(1.2e-16), "1.2e-16");
  EXPECT_EQ(number(NAN), "NaN");
  EXPECT_EQ(number(-INFINITY), "−∞");
  EXPECT_EQ(list(arma::vec{0.5, 1, 2}), "0.5, 1 and 2");
  EXPECT_EQ(list(arma::vec{3}), "3");
}

/// Asks the step everything; what it says may not hold any half sentence.
void ask(const Step& step, const Model& start, const attention::Trace& before, const Model& model) {
  const attention::Trace trace = attention::attend(model);
  const Moment moment{start, before, model, trace};
  for (const Picture& picture : pictures(step.exhibit, moment))
    EXPECT_EQ(picture.rows.size(), picture.numbers.n_rows) << step.title;
  if (!is_done(step, moment)) return;
  EXPECT_EQ(seen(step, moment).back(), '.') << step.title;
}

TEST(Lessons, TakeAnyModel) {
  Random random(7);
  for (const Lesson& lesson : tests::model_lessons())
    for (const Step& step : lesson.steps) {
      const Model start = model_at_start(step);
      const attention::Trace before = attention::attend(start);
      for (int k = 0; k < 12; ++k) {
        Model model = start;
        for (int e = 0; e < 3; ++e) {
          const std::size_t kind = editing::below(random, std::variant_size_v<editing::Edit>);
          try {
            model = editing::apply(model, editing::random_edit(random, model, kind));
          } catch (const Error&) {
            continue;  // an edit that does not fit
          }
          EXPECT_NO_THROW(ask(step, start, before, model)) << lesson.name << ": " << step.title;
        }
      }
    }
}

}  // namespace
}  // namespace core::lessons
