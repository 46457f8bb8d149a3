// A person may do anything in a lesson: its checks and exhibits must take any model.
#include <gtest/gtest.h>

#include "core/base/error.hpp"
#include "core/graph/attend.hpp"
#include "core/lessons/exhibits.hpp"
#include "core/lessons/lessons.hpp"
#include "tests/core/editing/random_edit.hpp"
#include "tests/core/lessons/tried.hpp"

namespace core::lessons {
namespace {

using attention::Model;
using editing::Random;

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

TEST(Lessons, TakeModelsOfOneToken) {
  for (const Lesson& lesson : tests::model_lessons())
    for (const Step& step : lesson.steps) {
      const Model start = model_at_start(step);
      const Model model = editing::apply(start, editing::SetTokenCount{1});
      EXPECT_NO_THROW(ask(step, start, attention::attend(start), model)) << lesson.name << ": " << step.title;
    }
}

}  // namespace
}  // namespace core::lessons
