#include <gtest/gtest.h>

#include "core/editing/presets.hpp"
#include "tests/support/lessons.hpp"
#include "tests/support/program.hpp"
#include "tests/support/waiting.hpp"

namespace {

using app::Key;
using core::editing::MatrixName;
using core::editing::MatrixRef;
using core::editing::SetCell;
using core::lessons::Lesson;
using gui::Program;

constexpr MatrixRef first_embeddings{MatrixName::embeddings, 0};

/// Makes the user's own work: the default preset with one number changed.
core::attention::Model own_work(Program& p) {
  p.edit(SetCell{first_embeddings, 1, 1, 0.25});
  return p.store.model();
}

void start(Program& p, const std::string& name) {
  p.store.apply_settings({.recent = {}, .progress = {}, .models = {support::model_of_lessons()}});
  p.store.dispatch(app::StartLesson{name});
  p.store.update();
  p.run();
}

TEST(LessonPanel, WalksEveryLessonToItsEndByKeyboard) {
  for (const Lesson& lesson : core::lessons::lessons()) {
    Program p;
    const auto own = own_work(p);
    start(p, lesson.name);
    const auto settle = [&] {
      if (lesson.trains()) support::settle(p.store, [&] { p.run(); });
    };
    for (std::size_t k = 0; k < lesson.steps.size(); ++k) {
      settle();
      ASSERT_EQ(p.store.lesson()->step, k) << lesson.name;
      EXPECT_TRUE(p.has("lesson/try")) << lesson.name << " " << k;
      for (const std::string& name : lesson.steps[k].focus)
        EXPECT_TRUE(p.has(name)) << lesson.name << ", " << lesson.steps[k].title << ": " << name;
      for (const auto& command : support::tried(lesson, k)) {
        p.store.dispatch(command);
        p.run();
        settle();
      }
      EXPECT_TRUE(p.has("lesson/seen")) << lesson.name << " " << k;
      p.key(Key::right);
    }
    EXPECT_EQ(p.store.lesson()->step, lesson.steps.size() - 1) << "the last step has no next";
    EXPECT_EQ(p.store.lesson()->done.size(), lesson.steps.size());
    p.key(Key::escape);
    EXPECT_EQ(p.store.lesson(), nullptr);
    EXPECT_EQ(p.store.model(), own);
    p.ctrl(Key::z);
    EXPECT_EQ(p.store.model(), own) << "undo after leaving gives the model from before";
    p.ctrl(Key::z);
    EXPECT_EQ(p.store.model(), core::editing::default_preset().make()) << "and then what was done before it";
  }
}

TEST(LessonPanel, TakesTheKeysThatItsStepAsksFor) {
  Program p;
  start(p, "000");
  EXPECT_TRUE(p.has("lesson/word/embedding"));
  for (int k = 0; k < 5; ++k) p.key(Key::right);
  EXPECT_TRUE(p.has("lesson/try"));
  p.key(Key::c);
  EXPECT_FALSE(p.store.model().mask.causal);
  EXPECT_TRUE(p.has("lesson/seen"));
  p.key(Key::r);
  EXPECT_TRUE(p.store.model().mask.causal) << "R starts the step again";
  EXPECT_TRUE(p.has("lesson/try"));
  p.key(Key::left);
  EXPECT_EQ(p.store.lesson()->step, 4u);
  p.click("lesson/next");
  EXPECT_EQ(p.store.lesson()->step, 5u);
  p.click("lesson/leave");
  EXPECT_EQ(p.store.lesson(), nullptr);
  EXPECT_FALSE(p.has("lesson/word/embedding"));
  p.click("menu/Help");
  p.click("menu/help/glossary");
  EXPECT_TRUE(p.has("glossary/softmax"));
}

TEST(LessonPanel, ShowsItsExhibitAboveTheStages) {
  Program p;
  start(p, "001");
  ASSERT_TRUE(p.has("exhibit/0"));
  ASSERT_TRUE(p.has("exhibit/1"));
  EXPECT_LT(p.rect("exhibit/0").max.y, p.rect("region/stages").min.y + 1);
  EXPECT_LE(p.rect("region/stages").max.y, p.rect("region/lesson").min.y);
  p.key(Key::right);
  p.key(Key::right);
  EXPECT_FALSE(p.has("exhibit/0")) << "the third step has none";
}

TEST(LessonPanel, FitsSmallWindows) {
  for (const ImVec2 size : {ImVec2(1280, 800), ImVec2(960, 600)}) {
    Program p(size);
    for (const Lesson& lesson : core::lessons::lessons()) {
      start(p, lesson.name);
      for (std::size_t k = 0; k < lesson.steps.size(); ++k) {
        const auto stages = p.rect(lesson.trains()        ? "region/learn"
                                   : lesson.model.empty() ? "region/stages"
                                                          : "region/layers"),
                   panel = p.rect("region/lesson");
        EXPECT_GT(stages.max.y - stages.min.y, 40) << lesson.name << " " << k;
        EXPECT_LE(p.rect("lesson/leave").max.y, panel.max.y) << lesson.name << " " << k;
        p.key(Key::right);
      }
      p.key(Key::escape);
    }
  }
}

}  // namespace
