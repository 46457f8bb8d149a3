// The displayed part of a matrix, and how the mouse and the keys change it.
#include <gtest/gtest.h>

#include "app/session/navigation.hpp"
#include "tests/support/program.hpp"

namespace {

using app::CellWindow;
using app::MatrixShape;
using app::View;

constexpr MatrixShape eight{8, 8};

TEST(Zoom, KeepsThePointAtThePointerWhereItIs) {
  View view;
  app::Zoom{eight, 2, 6, 0.5}.change(view);
  EXPECT_EQ(displayed_window(view.look, eight), (CellWindow{3, 1, 7, 5}));
  app::Zoom{eight, 2, 6, 2}.change(view);
  EXPECT_EQ(displayed_window(view.look, eight), (CellWindow{0, 0, 8, 8}));
  EXPECT_TRUE(view.look.zoomed.empty()) << "everything again";
}

TEST(Zoom, NeverLeavesTheMatrixAndShowsAtLeastOneCell) {
  View view;
  app::Zoom{eight, 0.5, 7.5, 1e-9}.change(view);
  const CellWindow part = displayed_window(view.look, eight);
  EXPECT_NEAR(part.right - part.left, 1, 1e-12);
  EXPECT_NEAR(part.bottom - part.top, 1, 1e-12);
  EXPECT_GE(part.top, 0);
  EXPECT_LE(part.right, 8);
  app::Pan{eight, -100, 100}.change(view);
  EXPECT_EQ(displayed_window(view.look, eight).top, 0);
  EXPECT_EQ(displayed_window(view.look, eight).right, 8);
}

TEST(Zoom, IsOfOneShapeAlone) {
  View view;
  app::Zoom{eight, 4, 4, 0.5}.change(view);
  EXPECT_EQ(displayed_window(view.look, {8, 3}), (CellWindow{0, 0, 3, 8}));
}

TEST(Zoom, BringsACellIntoThePart) {
  View view;
  app::Zoom{eight, 4, 4, 0.5}.change(view);
  ASSERT_EQ(displayed_window(view.look, eight), (CellWindow{2, 2, 6, 6}));
  app::ScrollToCell{eight, 7, 0}.change(view);
  EXPECT_EQ(displayed_window(view.look, eight), (CellWindow{0, 4, 4, 8}));
  app::ScrollToCell{eight, 5, 2}.change(view);
  EXPECT_EQ(displayed_window(view.look, eight), (CellWindow{0, 4, 4, 8})) << "it is there already";
}

struct ZoomedStrip : testing::Test {
  gui::Panels ui{gui::draw_strip, {1200, 1000}};
  MatrixShape tokens{ui.model().n_tokens(), ui.model().n_tokens()};
  ImVec2 weights() const { return ui.center("strip/weights"); }
};

support::Gesture with_ctrl(support::Gesture gesture) {
  for (support::InputFrame& frame : gesture) frame.ctrl = true;
  return gesture;
}

TEST_F(ZoomedStrip, TheWheelOverAMapThatShowsAllOfItsCellsIsForTheStrip) {
  ui.run();
  ui.play(support::turn_wheel(weights(), 1));
  ui.run();
  EXPECT_TRUE(ui.view().look.zoomed.empty());
}

TEST_F(ZoomedStrip, TheWheelZoomsTheMapOfThePinnedCellAndTheCornerComesBack) {
  ui.run();
  ui.click("strip/weights");
  ui.play(support::turn_wheel(weights(), 1));
  ui.run();
  EXPECT_EQ(ui.view().look.zoomed.size(), 1u);
  ASSERT_TRUE(ui.has("strip/weights/fit"));
  ui.click("strip/weights/fit");
  ui.run();
  EXPECT_TRUE(ui.view().look.zoomed.empty());
  EXPECT_FALSE(ui.has("strip/weights/fit"));
}

TEST_F(ZoomedStrip, WithCtrlTheWheelOverAMapZoomsAllOfItsShape) {
  ui.run();
  ui.play(with_ctrl(support::turn_wheel(weights(), 1)));
  ui.run();
  ASSERT_EQ(ui.view().look.zoomed.size(), 1u);
  const CellWindow part = displayed_window(ui.view().look, tokens);
  const double n = static_cast<double>(tokens.first);
  EXPECT_NEAR(part.right - part.left, n / 1.25, 1e-9);
  EXPECT_NEAR((part.left + part.right) / 2, n / 2, 0.2) << "around the pointer, which is in the middle";
}

TEST_F(ZoomedStrip, DraggingMovesThePartAndPinsNothing) {
  ui.run();
  ui.look([&](auto& v) { app::Zoom{tokens, 3, 3, 0.5}.change(v); });
  const CellWindow before = displayed_window(ui.view().look, tokens);
  ui.drag("strip/weights", -40, 0);
  EXPECT_GT(displayed_window(ui.view().look, tokens).left, before.left);
  EXPECT_EQ(displayed_window(ui.view().look, tokens).top, before.top);
  EXPECT_FALSE(ui.view().selection.pinned);
}

TEST_F(ZoomedStrip, AClickPinsTheCellThatIsSeenThere) {
  ui.run();
  ui.look([&](auto& v) { app::Zoom{tokens, 6, 6, 0.5}.change(v); });
  ASSERT_EQ(displayed_window(ui.view().look, tokens), (CellWindow{3, 3, 6, 6}));
  ui.click("strip/weights");
  EXPECT_EQ(ui.view().selection.pinned, (app::CellRef{app::Stage::weights, 0, 4, 4}));
}

}  // namespace
