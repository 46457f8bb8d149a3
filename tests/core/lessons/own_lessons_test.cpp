// Lessons of somebody's own: files whose errors name a line, and expressions of strangers.
#include <gmock/gmock.h>

#include "core/editing/presets.hpp"
#include "core/files/json.hpp"
#include "core/files/session.hpp"
#include "core/graph/attend.hpp"
#include "core/lessons/expression.hpp"
#include "core/lessons/lessons.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/temporary_directory.hpp"

namespace core::lessons {
namespace {

using testing::HasSubstr;

/// Returns a lesson of two steps, with these conditions.
std::string lesson_with(const std::string& done, const std::string& more = "") {
  return "{\n  \"attnscope_lesson\": 1,\n  \"title\": \"Mine\",\n  \"steps\": [\n    {\n"
         "      \"title\": \"One\", \"text\": \"Look.\", \"try\": \"Turn the mask off.\",\n"
         "      \"done\": \"not causal\", \"seen\": \"{weights[0, 1]} is not 0.\",\n"
         "      \"start\": {\"preset\": \"004-causal\"}\n    },\n    {\n"
         "      \"title\": \"Two\", \"text\": \"Again.\", \"try\": \"The same.\",\n      \"done\": \"" +
         done + "\", \"seen\": \"done\"" + more + "\n    }\n  ]\n}\n";
}

TEST(OwnLesson, BeginsWhereTheStepBeforeBeganUnlessItSays) {
  const Lesson lesson = parse_lesson(lesson_with("n_heads > 1"), "mine.json", {});
  EXPECT_EQ(lesson.name, "mine.json");
  ASSERT_EQ(lesson.steps.size(), 2u);
  EXPECT_EQ(model_at_start(lesson.steps[1]), editing::find_preset("004-causal")->make());
  EXPECT_TRUE(is_lesson_text(lesson.source));
}

TEST(OwnLesson, SaysTheLineOfAnError) {
  const auto error = [](const std::string& text) {
    return support::error_of([&] { parse_lesson(text, "mine.json", {}); });
  };
  EXPECT_THAT(error(lesson_with("no_such > 1")),
              HasSubstr("mine.json: line 12: steps[1].done: \"no_such > 1\": there is no \"no_such\""));
  EXPECT_THAT(
      error(lesson_with("causal")),
      HasSubstr("line 12: steps[1].done: expected a condition that does not hold before the task was tried"));
  EXPECT_THAT(error(lesson_with("n_heads > 1", ",\n      \"start\": {\"preset\": \"none\"}")),
              HasSubstr("line 13: steps[1].start: preset none: there is no such preset"));
  EXPECT_THAT(error(lesson_with("n_heads > 1", ",\n      \"colour\": 1")), HasSubstr("mine.json: line 1"));
  EXPECT_THAT(error(lesson_with("n_heads > 1", ",\n      \"start\": {\"session\": \"/etc/passwd\"}")),
              HasSubstr("expected a session, or the name of one in the folder of the lesson"));
  EXPECT_THAT(error("{\"attnscope_lesson\": 1,\n\"title\": }"), HasSubstr("mine.json: line 2, column 10"));
}

TEST(OwnLesson, MayNameASessionInItsFolder) {
  const support::TemporaryDirectory directory;
  const attention::Model model = editing::find_preset("multi-head")->make();
  formats::save_session(directory.path() / "start.json", {model, "", {}});
  const Lesson lesson = parse_lesson(lesson_with("n_heads > 2", ", \"start\": {\"session\": \"start.json\"}"),
                                     "mine.json", directory.path());
  EXPECT_EQ(model_at_start(lesson.steps[1]), model);
}

TEST(OwnLesson, DraftCanBeReadAndIsDoneOnceTheOutputHasChanged) {
  attention::Model model = editing::find_preset("multi-head")->make();
  const Lesson lesson = parse_lesson(
      lesson_draft("a \"title\"", "", formats::session_text({model, "", {}}), "strip/weights"), "draft", {});
  const attention::Model start = model_at_start(lesson.steps[0]);
  EXPECT_EQ(start, model);
  model.projections->value.weight.set(0, 0, 3);
  const attention::Trace before = attention::attend(start), now = attention::attend(model);
  EXPECT_TRUE(is_done(lesson.steps[0], StepState{start, before, model, now}));
}

TEST(OwnLesson, ExpressionsOfStrangersEnd) {
  const NameResolver names = [](const NameReference&) { return LessonValue(1.0); };
  EXPECT_THAT(support::error_of([&] { holds(std::string(2000, '('), names); }), HasSubstr("at most 1000"));
  EXPECT_THAT(support::error_of([&] { holds("moved(moved(x) + moved(x)) > 1", names); }),
              HasSubstr("inside another change"));
  EXPECT_EQ(index_of(-1), index_of(1e300));
  EXPECT_EQ(index_of(3), 3u);
}

TEST(Json, FindsTheLineOfAPath) {
  const std::string text =
      "{\n \"a\": [\n  {\"b\": \"{[,\\\"\"},\n  {\n   \"c\": 1}],\n \"d\": {\"e\": [1,\n2]}}";
  EXPECT_EQ(formats::line_of_path(text, "a[1].c"), 5u);
  EXPECT_EQ(formats::line_of_path(text, "a[0].b"), 3u);
  EXPECT_EQ(formats::line_of_path(text, "d.e[1]"), 7u);
  EXPECT_EQ(formats::line_of_path(text, "a[1].missing"), 4u);
}

}  // namespace
}  // namespace core::lessons
