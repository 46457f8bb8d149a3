#include <gmock/gmock.h>
#include <cmath>

#include "core/base/error.hpp"
#include "core/graph/attend.hpp"
#include "core/graph/stages.hpp"
#include "core/lessons/exhibits.hpp"
#include "core/lessons/expression.hpp"
#include "core/lessons/lessons.hpp"
#include "tests/core/editing/random_edit.hpp"
#include "tests/core/lessons/tried.hpp"

namespace core::lessons {
namespace {

using attention::Model;
using editing::Random;
using testing::HasSubstr;

/// Returns whether a step is done, with the model at its start and after some edits.
bool done(const LessonStep& step, const Model& start, const Model& model) {
  const attention::Trace before = attention::attend(start), trace = attention::attend(model);
  return is_done(step, StepState{start, before, model, trace});
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
      const LessonStep& step = lesson.steps[k];
      const Model start = model_at_start(step);
      EXPECT_FALSE(done(step, start, start)) << place(lesson, k);
      EXPECT_TRUE(done(step, start, edited(start, edits.at(lesson.name)[k]))) << place(lesson, k);
    }
  }
}

TEST(Lessons, AreNotDoneByAnyOtherSmallChange) {
  // A renamed token changes no number: only steps about another text may accept it.
  std::size_t taken = 0;
  for (const Lesson& lesson : tests::model_lessons())
    for (const LessonStep& step : lesson.steps) {
      const Model start = model_at_start(step);
      if (done(step, start, edited(start, {editing::RenameToken{0, 0, "renamed"}}))) ++taken;
    }
  EXPECT_EQ(taken, 2u);  // the pairs of a typed sentence and the names of 003
}

/// A claim of a lesson's text, as a condition: `before.` is the start of the step, everything else the result
/// of its "try it".
struct Promise {
  const char* lesson;
  std::size_t step;
  const char *words, *expression;
};

constexpr Promise promises[] = {
    {"000", 0, "six words have three numbers each", "before.n_tokens == 6 and before.d_model == 3"},
    {"000", 3, "divided by √3",
     "before.d_head == 3 and before.scale_factor > 0.57735 and before.scale_factor < 0.57736"},
    {"000", 4, "the ones form a triangle", "max_above_diagonal(before.mask) == 0 and sum(before.mask) == 21"},
    {"000", 5, "each row still sums to 1", "max(abs(row_sums(before.weights) - 1)) < 1e-12"},
    {"000", 6, "very unequal shares", "max(row(weights, -1)) > 2 * max(row(before.weights, -1))"},
    {"000", 7, "one word only, the last word to all",
     "sum(row(before.mask, 0)) == 1 and sum(row(before.mask, -1)) == 6"},
    {"000", 7, "Make the last word attend most to the first", "argmax(weights, -1) == 0"},
    {"000", 9, "its context vector is its own value",
     "agree(row(before.contexts, 0), row(before.values, 0))"},
    {"000", 10, "Set heads to 3, with one column each", "n_heads == 3 and d_head == 1"},
    {"001", 1, "all 36 dot products", "before.n_tokens * before.n_tokens == 36"},
    {"001", 2, "every row still sums to 1", "max(abs(row_sums(weights) - 1)) < 1e-12"},
    {"001", 3, "all scores are equal", "max(scaled_scores) == min(scaled_scores)"},
    {"001", 4, "√256 = 16", "before.d_model == 256 and before.scale_factor == 0.0625"},
    {"001", 5, "(8, 4, 256)", "before.n_sequences == 8 and before.n_tokens == 4 and before.d_model == 256"},
    {"001-heads", 0, "five words make four pairs", "before.n_tokens == 5"},
    {"001-heads", 7, "example p is 0", "before.dropout_rate == 0"},
    {"002", 1, "40 % of another",
     "max(row(before.weights, -1)) > 0.395 and max(row(before.weights, -1)) < 0.405"},
    {"002", 2, "B = 4 sequences of T = 8 tokens with C = 65",
     "before.n_sequences == 4 and before.n_tokens == 8 and before.d_model == 65"},
    {"002", 3, "all six words", "before.n_tokens == 6"},
    {"002", 4, "the mean of all tokens up to itself",
     "before.weights[1, 0] == 0.5 and before.weights[2, 1] > 0.3333 and before.weights[2, 1] < 0.3334"},
    {"002", 5, "softmax makes equal shares", "max(row(before.weights, 3)) == before.weights[3, 0]"},
    {"002", 7, "65 terms", "before.d_head == 65"},
    {"002", 8, "32 features, head size 16, no scaling",
     "before.d_model == 32 and before.d_head == 16 and before.scale == 'none'"},
    {"003", 2, "d_in is 3 and d_out is 2", "before.d_model == 3 and before.d_out == 2"},
    {"003", 3, "5 × 5 matrix", "before.n_tokens == 5"},
    {"003", 3, "by far the largest score", "scores[0, 4] == 100 and max(scores) == 100"},
    {"003", 4, "the masked positions are 0 and each row sums to 1",
     "max_above_diagonal(before.weights) == 0 and max(abs(row_sums(before.weights) - 1)) < 1e-12"},
    {"003", 4, "their share would be missing", "min(row_sums(weights)) < 0.9"},
    {"003", 5, "ten heads with one token each",
     "before.n_heads == 10 and before.n_tokens == 1 and before.dropout_scale == 2"},
    {"004", 0, "three features to two", "before.d_model == 3 and before.d_out == 2 and not before.causal"},
    {"004", 1, "The rows no longer sum to 1", "min(row_sums(before.weights)) < 0.9"},
    {"004", 4, "[[0, 1000], [0, 0]]",
     "before.scores[0, 1] == 1000 and before.scores[0, 0] == 0 and before.scores[1, 1] == 0"},
    {"dropout", 1, "at p = 0.5 they are doubled", "before.dropout_scale == 2"},
    {"dropout", 2, "loses little sums to more than 1",
     "max(row_sums(before.dropped_weights)) > 1 and min(row_sums(before.dropped_weights)) < 1"},
    {"dropout", 6, "one row keeps no weight at all", "min(row_sums(before.dropped_weights)) == 0"},
    {"groups", 0, "heads 0 and 1 share the first, heads 2 and 3 the second",
     "before.n_heads == 4 and before.n_kv_heads == 2 and agree(before.keys@0, before.keys@1) and agree(before.keys@2, before.keys@3)"},
    {"groups", 2, "heads 1 and 2 swap their keys",
     "agree(keys@1, before.keys@2) and agree(keys@2, before.keys@1) and agree(keys@0, before.keys@0)"},
    {"heads", 0, "query i matches key i − 1",
     "argmax(before.weights, 3) == 2 and argmax(before.weights, 1) == 0"},
    {"heads", 0, "Make the last position attend to the first", "argmax(weights, -1) == 0"},
    {"heads", 1, "every query matches position 0",
     "argmax(before.weights, -1) == 0 and argmax(before.weights, 3) == 0"},
    {"heads", 1, "hardly anything changes", "max(abs(weights - before.weights)) < 0.05"},
    {"heads", 3, "every score is 0", "max(abs(before.scores)) == 0"},
    {"heads", 3, "the last position then matches the first", "argmax(weights, -1) == 0"},
    {"decode", 2, "one query and there are eight keys",
     "before.n_tokens == 1 and sum(row(before.mask, 0)) == 8"},
    {"decode", 2, "the first key only", "sum(row(mask, 0)) == 1 and mask[0, 0] == 1"},
    {"positions", 0, "all scores are equal", "max(before.scores) - min(before.scores) < 1e-12"},
    {"positions", 3, "almost every weight changes",
     "sum(abs(weights - before.weights) > 1e-6) > 0.8 * sum(mask)"},
    {"scaling", 0, "65 products", "before.d_head == 65"},
    {"scaling", 2, "all unmasked keys have equal weight", "weights[-1, 0] == weights[-1, 1]"},
    {"scaling", 3, "√32 rather than √256", "before.d_head == 32 and before.d_model == 256"},
    {"scaling", 4, "masked positions stay masked", "max_above_diagonal(weights) == 0"},
    {"window", 0, "the last few only", "sum(row(mask, -1)) == 4"},
    {"window", 1, "one key in each row", "sum(row(before.mask, -1)) - sum(row(mask, -1)) == 1"},
    {"window", 2, "its share goes to no value", "min(row_sums(weights)) < 1"},
};

TEST(Lessons, KeepWhatTheirTextsPromise) {
  const auto edits = tests::tried();
  for (const Promise& promise : promises) {
    const Lesson& lesson = *find_lesson(promise.lesson);
    LessonStep step = lesson.steps.at(promise.step);
    EXPECT_THAT(step.text + " " + step.try_it, HasSubstr(promise.words)) << place(lesson, promise.step);
    const Model start = model_at_start(step);
    step.done = promise.expression;
    EXPECT_TRUE(done(step, start, edited(start, edits.at(lesson.name)[promise.step])))
        << place(lesson, promise.step) << ": " << promise.words;
  }
}

TEST(Lessons, PointAtStagesThatTheirModelHas) {
  for (const Lesson& lesson : tests::model_lessons())
    for (std::size_t k = 0; k < lesson.steps.size(); ++k) {
      const LessonStep& step = lesson.steps[k];
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
      const LessonStep& step = lesson.steps[k];
      if (!step.predict) continue;
      ++asked;
      const attention::Model start = model_at_start(step);
      attention::Model now = start;
      for (const auto& edit : tried.at(lesson.name)[k]) now = editing::apply(now, edit);
      const attention::Trace before = attention::attend(start, 0), after = attention::attend(now, 0);
      const auto moved = changed_cells({start, before, now, after}, *step.predict, 0);
      ASSERT_FALSE(moved.empty()) << "step " << k << " asks for a stage that does not change";
      const auto& numbers = attention::info(*step.predict);
      const double by = std::abs(after.at(numbers.stage, 0)(moved[0].row, moved[0].column) -
                                 before.at(numbers.stage, 0)(moved[0].row, moved[0].column));
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

/// Reads a step's pictures and observation, which must be a full sentence.
void ask(const LessonStep& step, const Model& start, const attention::Trace& before, const Model& model) {
  const attention::Trace trace = attention::attend(model);
  const StepState state{start, before, model, trace};
  for (const ExhibitPicture& picture : pictures(step.exhibit, state))
    EXPECT_EQ(picture.rows.size(), picture.numbers.n_rows) << step.title;
  if (!is_done(step, state)) return;
  EXPECT_EQ(seen(step, state).back(), '.') << step.title;
}

TEST(Lessons, TakeAnyModel) {
  Random random(7);
  for (const Lesson& lesson : tests::model_lessons())
    for (const LessonStep& step : lesson.steps) {
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
