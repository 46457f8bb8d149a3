#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "core/graph/attend.hpp"
#include "core/graph/stages.hpp"
#include "core/lessons/lessons.hpp"
#include "tests/core/lessons/tried.hpp"

namespace core::lessons {
namespace {

using attention::Model;

/// Whether a step is done, and what was seen, with the model at its start and after some edits.
bool done(const Step& step, const Model& start, const Model& model) {
  const attention::Trace before = attention::attend(start), trace = attention::attend(model);
  return is_done(step, Moment{start, before, model, trace});
}
std::string seen_after(const Step& step, const Model& start, const Model& model) {
  const attention::Trace before = attention::attend(start), trace = attention::attend(model);
  return seen(step, Moment{start, before, model, trace});
}

Model edited(Model model, const std::vector<editing::Edit>& edits) {
  for (const editing::Edit& edit : edits) model = editing::apply(model, edit);
  return model;
}

std::string place(const Lesson& lesson, std::size_t step) {
  return std::string(lesson.name) + ", step " + std::to_string(step) + ", " + lesson.steps[step].title;
}

TEST(Lessons, CanBeFoundByName) {
  for (const Lesson& lesson : lessons()) EXPECT_EQ(find_lesson(lesson.name), &lesson);
  for (const char* notebook : {"000", "001", "002", "003", "004"}) EXPECT_NE(find_lesson(notebook), nullptr);
  EXPECT_EQ(find_lesson("no such lesson"), nullptr);
  EXPECT_EQ(find_lesson("000")->steps.size(), 11u);
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

TEST(Lessons, SayWhatWasSeenInOneFullSentence) {
  const auto edits = tests::tried();
  for (const Lesson& lesson : tests::model_lessons())
    for (std::size_t k = 0; k < lesson.steps.size(); ++k) {
      const Step& step = lesson.steps[k];
      const Model start = model_at_start(step);
      const std::string seen = seen_after(step, start, edited(start, edits.at(lesson.name)[k]));
      EXPECT_GT(seen.size(), 15u) << place(lesson, k);
      EXPECT_EQ(seen.back(), '.') << place(lesson, k) << ": " << seen;
      EXPECT_EQ(seen.find("inf"), std::string::npos) << seen;
      RecordProperty(lesson.name + std::to_string(k), seen);
    }
}

TEST(Lessons, SpeakInShortTextsOfKnownTerms) {
  for (const Lesson& lesson : lessons()) {
    std::set<std::string> titles;
    for (std::size_t k = 0; k < lesson.steps.size(); ++k) {
      const Step& step = lesson.steps[k];
      EXPECT_TRUE(titles.insert(step.title).second) << place(lesson, k);
      EXPECT_LE(std::string(step.text).size(), 330u) << place(lesson, k);
      EXPECT_GE(step.words.size(), 1u) << place(lesson, k);
      for (const std::string& word : step.words)
        EXPECT_NE(find_term(word), nullptr) << place(lesson, k) << ": " << word;
      EXPECT_EQ(std::string(step.try_it).back(), '.') << place(lesson, k);
    }
  }
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

}  // namespace
}  // namespace core::lessons
