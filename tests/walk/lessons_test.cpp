#include <gtest/gtest.h>

#include "core/lessons/lessons.hpp"
#include "tests/support/lessons.hpp"
#include "tests/support/waiting.hpp"
#include "tests/walk/walk.hpp"

namespace {

using app::Key;
using core::editing::MatrixName;
using core::editing::SetCell;

void edit(walk::Walk& ui, const core::editing::Edit& edit) {
  ui.store.dispatch(app::ApplyEdit{edit});
  ui.store.dispatch(app::EndGesture{});
  ui.run();
}

void settle(walk::Walk& ui) {
  support::settle(ui.store, [&] { ui.run(1); });
}

void walk_every_lesson(int width, int height) {
  for (const core::lessons::Lesson& lesson : core::lessons::lessons()) {
    SCOPED_TRACE(lesson.name);
    walk::Walk ui(width, height);
    ui.sharp = false;
    edit(ui, SetCell{{MatrixName::embeddings, 0}, 1, 1, 0.25});
    const auto own = ui.model();
    ui.store.recall({.recent = {}, .progress = {}, .models = {WALK_EXAMPLES "/tiny_gpt"}});
    ui.store.dispatch(app::StartLesson{lesson.name});
    settle(ui);
    ASSERT_TRUE(ui.store.lesson());
    for (std::size_t k = 0; k < lesson.steps.size(); ++k) {
      ASSERT_EQ(ui.store.lesson()->step, k);
      EXPECT_TRUE(ui.has("lesson/try")) << "step " << k;
      for (const auto& command : support::tried(lesson, k)) {
        ui.store.dispatch(command);
        settle(ui);
      }
      ui.run();
      EXPECT_TRUE(ui.has("lesson/seen")) << "step " << k;
      ui.key(Key::right);
      ui.run();
    }
    ui.key(Key::escape);
    EXPECT_EQ(ui.store.lesson(), nullptr);
    EXPECT_TRUE(walk::same_bits(ui.model(), own));
    ui.key(Key::z, {.ctrl = true});
    EXPECT_TRUE(walk::same_bits(ui.model(), own)) << "undo after leaving gives the model from before";
  }
}

TEST(Lessons, AreWalkedToTheirEndsByKeyboard) {
  walk_every_lesson(1600, 1000);
}

TEST(Lessons, AreWalkedInTheSmallestWindow) {
  walk_every_lesson(960, 600);
}

}  // namespace
