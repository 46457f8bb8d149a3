// What a cell is made of, followed upstream; and everything once without a mouse.
#include <gmock/gmock.h>

#include "tests/walk/walk.hpp"

namespace walk {
namespace {

using app::CellRef;
using core::attention::info;

struct Explaining : Program {
  ImVec2 cell(const std::string& map, std::size_t rows, std::size_t columns, std::size_t row,
              std::size_t column) const {
    const auto rect = ui.landmarks().find(map).value();
    const auto part = [](float from, float to, std::size_t n, std::size_t k) {
      return from + (to - from) * (static_cast<float>(k) + 0.5f) / static_cast<float>(n);
    };
    return {part(rect.min.x, rect.max.x, columns, column), part(rect.min.y, rect.max.y, rows, row)};
  }
  const CellRef& pinned() const { return ui.store.view().selection.pinned.value(); }
  /// The first operand of the first step of the inspector.
  CellRef follow() {
    ui.click("inspector/step/0/line/0/a");
    ui.run();
    return pinned();
  }
};

TEST_F(Explaining, ACellIsHoveredPinnedFollowedUpstreamThreeTimesLeftAgainAndReleased) {
  const CellRef start{Stage::contexts, 0, 2, 1};
  ui.play(support::move_to(cell("strip/contexts", 6, 2, 2, 1)));
  EXPECT_EQ(ui.store.view().selection.hovered, start);
  EXPECT_FALSE(ui.store.view().selection.pinned);
  ui.play(support::click(cell("strip/contexts", 6, 2, 2, 1)));
  ASSERT_EQ(pinned(), start);

  const CellRef first = follow(), second = follow(), third = follow();
  EXPECT_LT(first.stage, start.stage);
  EXPECT_LT(second.stage, first.stage);
  EXPECT_LT(third.stage, second.stage);
  EXPECT_THAT(ui.store.view().selection.trail, testing::ElementsAre(start, first, second));
  for (const CellRef& c : {first, second, third}) EXPECT_EQ(c.row, 2u) << info(c.stage).name;

  ui.click("inspector/back");
  EXPECT_EQ(pinned(), second);
  ui.key(Key::backspace);
  EXPECT_EQ(pinned(), first);
  ui.key(Key::backspace);
  EXPECT_EQ(pinned(), start);
  EXPECT_TRUE(ui.store.view().selection.trail.empty());
  ui.play(support::click(cell("strip/contexts", 6, 2, 2, 1)));
  EXPECT_FALSE(ui.store.view().selection.pinned) << "a second click releases";
}

struct WithoutAMouse : Program {
  void keys(std::initializer_list<Key> all, support::Modifiers m = {}) {
    for (const Key key : all) ui.key(key, m);
    ui.run();
  }
  const app::View& view() const { return ui.store.view(); }
};

TEST_F(WithoutAMouse, CellsArePinnedWalkedOverExplainedAndReleased) {
  const support::Modifiers shift{.shift = true};
  keys({Key::down, Key::down, Key::down, Key::right}, shift);
  EXPECT_EQ(view().selection.pinned, (CellRef{Stage::weights, 0, 2, 1}));
  EXPECT_TRUE(ui.has("inspector/value"));
  keys({Key::page_up}, shift);
  EXPECT_EQ(view().selection.pinned, (CellRef{Stage::masked_scores, 0, 2, 1}));
  keys({Key::bracket_right});
  EXPECT_EQ(view().look.head, 1u);
  keys({Key::l});
  EXPECT_EQ(view().look.large, Stage::masked_scores);
  EXPECT_TRUE(ui.has("large/row"));
  keys({Key::plus, Key::plus});
  EXPECT_FALSE(view().look.zoomed.empty());
  keys({Key::f, Key::g});
  EXPECT_TRUE(view().look.zoomed.empty());
  EXPECT_TRUE(view().look.gutters);
  keys({Key::escape, Key::escape});
  EXPECT_FALSE(view().selection.pinned);
  EXPECT_FALSE(view().look.large);
}

TEST_F(WithoutAMouse, ANumberIsChangedComparedAndTakenBack) {
  keys({Key::k});
  const double before = (*ui.model().sequences[0].embeddings)(0, 0);
  keys({Key::e});
  ui.type("2.5");
  keys({Key::enter, Key::escape, Key::escape});
  EXPECT_EQ((*ui.model().sequences[0].embeddings)(0, 0), 2.5);
  keys({Key::digit_4}, {.ctrl = true});
  EXPECT_EQ(view().look.tab, app::Tab::compare);
  ASSERT_NE(ui.store.comparing().comparison(), nullptr);
  ASSERT_NE(ui.store.comparing().comparison()->first, nullptr);
  EXPECT_EQ(ui.store.comparing().comparison()->first->all.stage, Stage::embeddings);
  EXPECT_DOUBLE_EQ(ui.store.comparing().comparison()->first->all.largest, 2.5 - before);
  keys({Key::z}, {.ctrl = true});
  EXPECT_EQ((*ui.model().sequences[0].embeddings)(0, 0), before);
}

TEST_F(WithoutAMouse, EveryViewSwitchThemeAndSheetIsReached) {
  const support::Modifiers ctrl{.ctrl = true};
  keys({Key::digit_2}, ctrl);
  EXPECT_EQ(view().look.tab, app::Tab::heads);
  keys({Key::digit_3}, ctrl);
  EXPECT_EQ(view().look.tab, app::Tab::tokens);
  keys({Key::down, Key::down});
  EXPECT_EQ(view().look.tokens.pinned_query, 1u);
  keys({Key::escape});
  EXPECT_FALSE(view().look.tokens.pinned_query);
  keys({Key::digit_1}, ctrl);
  EXPECT_EQ(view().look.tab, app::Tab::stages);
  keys({Key::c, Key::d, Key::t});
  EXPECT_FALSE(ui.model().mask.causal);
  EXPECT_FALSE(ui.model().dropout.training);
  EXPECT_FALSE(view().settings.dark);
  keys({Key::f1});
  EXPECT_EQ(view().forms.dialog, app::Dialog::keys);
  keys({Key::escape});
  EXPECT_EQ(view().forms.dialog, app::Dialog::none);
}

}  // namespace
}  // namespace walk
