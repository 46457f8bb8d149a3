// Gradients of a number in the window: shown, explained, stepped along, undone and kept.
#include <gmock/gmock.h>

#include "app/session/remembered.hpp"
#include "core/graph/attend.hpp"
#include "core/graph/gradients.hpp"
#include "tests/support/program.hpp"

namespace {

using app::CellRef;
using app::Key;
using core::attention::Stage;
using core::graph::Target;

const CellRef output{Stage::output, 0, 3, 1};

/// Pins a number of the output and shows its gradient.
void show_gradient(gui::Program& program) {
  program.store.dispatch(app::LoadPreset{"multi-head"});
  program.store.dispatch(app::PinCell{output});
  program.run();
  program.key(Key::d, {false, true});
}

double number(const gui::Program& program) {
  return core::attention::attend(program.store.model()).at(Stage::output)(output.row, output.column);
}

TEST(Gradient, OfThePinnedCellIsShownInEveryMapAndIsNoEdit) {
  gui::Program program;
  show_gradient(program);
  EXPECT_EQ(program.store.view().look.gradient.of, (Target{Stage::output, 0, 3, 1}));
  for (const char* place : {"gradient/banner", "strip/d_weights", "strip/d_embeddings", "inspector/gradient"})
    EXPECT_TRUE(program.landmarks().find(place)) << place;
  EXPECT_FALSE(program.landmarks().find("strip/weights"));
  program.key(Key::v);
  for (const char* place : {"strip/d_weights", "strip/weights"})
    EXPECT_TRUE(program.landmarks().find(place)) << place;
  program.key(Key::v);
  EXPECT_FALSE(program.landmarks().find("strip/d_weights"));
  EXPECT_FALSE(program.store.document().steps.can_undo) << "a view is not undone";
  program.store.dispatch(app::ShowGradient{});
  program.run();
  EXPECT_FALSE(program.store.view().look.gradient.of);
  EXPECT_FALSE(program.landmarks().find("gradient/banner"));
}

TEST(Gradient, UnitOfSmallNumbersIsNextToEveryMap) {
  for (const ImVec2 size : {ImVec2{1280, 800}, ImVec2{1920, 1080}}) {
    gui::Program program(size);
    program.screen.has_fonts = true;
    show_gradient(program);
    std::size_t small = 0;
    for (const Stage stage : {Stage::embeddings, Stage::queries, Stage::keys, Stage::values, Stage::scores,
                              Stage::scaled_scores, Stage::masked_scores}) {
      const arma::mat& gradient = program.store.live_gradient().gradients()->stages.at(stage, 0);
      const std::string place = std::string("strip/d_") + core::attention::info(stage).name;
      ASSERT_TRUE(program.landmarks().find(place)) << place;
      if (arma::abs(gradient).max() >= 0.1) continue;
      ++small;
      const auto unit = program.landmarks().find(place + "/unit");
      ASSERT_TRUE(unit) << place << " at " << size.x;
      EXPECT_LE(unit->max.x, size.x);
    }
    EXPECT_GT(small, 3u);
  }
}

TEST(Gradient, StepRaisesTheNumberAsPredictedAndCanBeUndone) {
  gui::Program program;
  show_gradient(program);
  program.store.dispatch(app::set<&app::GradientLook::step>(1e-3));
  program.run();
  const double before = number(program), value = program.store.live_gradient().gradients()->value;
  EXPECT_NEAR(value, before, 1e-12);
  const auto after = program.store.live_gradient().value_after_step();
  ASSERT_TRUE(after);
  const double change = app::predicted_change(*program.store.live_gradient().gradients(),
                                              program.store.model(), program.store.view().look);
  program.store.dispatch(app::StepAlongGradient{});
  program.run();
  EXPECT_NEAR(number(program) - before, change, 0.01 * change);
  EXPECT_NEAR(number(program), *after, 1e-12);
  EXPECT_NEAR(program.store.live_gradient().gradients()->value, number(program), 1e-12);
  program.store.dispatch(app::Undo{});
  program.run();
  program.store.dispatch(app::StepAlongGradient{true});
  program.run();
  EXPECT_LT(number(program), before);
  program.store.dispatch(app::Undo{});
  EXPECT_EQ(number(program), before);
}

TEST(Gradient, IsPartOfTheViewOfASession) {
  gui::Program program;
  show_gradient(program);
  const std::string text = app::view_text(program.store.view());
  EXPECT_THAT(text, testing::HasSubstr(R"("gradient": {"of": "output[3,1]", "head": 0})"));
  app::View view;
  app::restore_view(text, view);
  EXPECT_EQ(view.look.gradient.of, (Target{Stage::output, 0, 3, 1}));
}

TEST(Gradient, OfANumberThatTheModelLosesIsNotShown) {
  gui::Program program;
  show_gradient(program);
  program.edit(core::editing::RemoveToken{5});
  program.edit(core::editing::RemoveToken{4});
  EXPECT_TRUE(program.store.view().look.gradient.of);
  program.edit(core::editing::RemoveToken{3});
  EXPECT_FALSE(program.store.view().look.gradient.of);
}

}  // namespace
