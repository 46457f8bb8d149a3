// The pinned cell, its map, its inspector, its animation and the presentation are of the same head.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>

#include "app/session/navigation.hpp"
#include "core/base/number.hpp"
#include "core/graph/stages.hpp"
#include "tests/support/drawn_texts.hpp"
#include "tests/support/look.hpp"
#include "tests/support/program.hpp"
#include "tests/support/waiting.hpp"

namespace {

using app::CellRef;
using app::Key;
using app::Tab;
using core::attention::Stage;

struct OneHead : testing::Test {
  gui::Program ui{{1600, 1000}};

  void SetUp() override {
    ui.screen.has_fonts = true;
    ui.run(4);
  }
  void look(const std::function<void(app::View&)>& change) {
    support::look(ui.store, change);
    ui.run(3);
  }
  void pin(const CellRef& cell) {
    ui.store.dispatch(app::PinCell{cell});
    ui.run(3);
  }
  /// A number drawn as text, with its count of decimals; −1: there is none.
  struct DrawnNumber {
    double value = 0;
    int decimals = -1;
  };
  static DrawnNumber number(std::string text) {
    if (text.starts_with("−")) text.replace(0, std::string("−").size(), "-");
    const auto value = core::text::parse_number(text);
    if (!value) return {};
    const auto dot = text.find('.');
    return {*value, dot == text.npos ? 0 : static_cast<int>(text.size() - dot - 1)};
  }
  /// Compares the number in the framed cell of a map with the large one of the inspector.
  void expect_same_value(const std::string& where) {
    SCOPED_TRACE(where);
    const auto& pinned = ui.store.view().selection.pinned;
    ASSERT_TRUE(pinned) << "the pin is kept";
    const auto& info = core::attention::info(pinned->stage);
    const auto& numbers = ui.store.live().trace().at(pinned->stage, ui.store.view().look.head);
    const app::Rect map = ui.rect(std::string("strip/") + info.name), side = ui.rect("region/inspector");
    const float width = map.width() / static_cast<float>(numbers.n_cols()),
                height = map.height() / static_cast<float>(numbers.n_rows());
    const ImVec2 cell{map.min.x + width * static_cast<float>(pinned->column),
                      map.min.y + height * static_cast<float>(pinned->row)};
    DrawnNumber in_map, in_inspector;
    support::TextReader reader;
    for (const support::DrawnText& t : reader.texts()) {
      const ImVec2 middle{(t.min.x + t.max.x) / 2, (t.min.y + t.max.y) / 2};
      if (middle.x > cell.x && middle.x < cell.x + width && middle.y > cell.y && middle.y < cell.y + height)
        in_map = number(t.text);
      if (t.mono && t.size > 20 && t.min.x > side.min.x) in_inspector = number(t.text);
    }
    ASSERT_GE(in_map.decimals, 0);
    ASSERT_GE(in_inspector.decimals, 0);
    const double step = std::pow(10, -std::min(in_map.decimals, in_inspector.decimals));
    EXPECT_NEAR(in_map.value, in_inspector.value, 0.51 * step);
    EXPECT_NEAR(in_inspector.value, numbers(pinned->row, pinned->column), 1e-4);
  }
};

TEST_F(OneHead, IsUnderTheFrameAndInTheInspectorInEveryStage) {
  for (const Stage stage : {Stage::queries, Stage::keys, Stage::values, Stage::scores, Stage::scaled_scores,
                            Stage::weights, Stage::contexts}) {
    const std::string name = core::attention::info(stage).name;
    look([](app::View& v) { v.look.head = 0; });
    pin({stage, 0, 3, 1});
    expect_same_value(name + ", head 0");
    ui.key(Key::digit_2);
    ui.run(3);
    ASSERT_EQ(ui.store.view().look.head, 1u);
    EXPECT_EQ(ui.store.view().selection.pinned, (CellRef{stage, 1, 3, 1}));
    expect_same_value(name + ", head 1 by its key");
    ui.click("view/head/0");
    ui.run(3);
    expect_same_value(name + ", head 0 by its button");
  }
}

TEST_F(OneHead, IsKeptWhenSequenceStageOrCountOfHeadsChange) {
  pin({Stage::weights, 1, 4, 2});
  ASSERT_EQ(ui.store.view().look.head, 1u);
  ui.edit(core::editing::AddSequence{});
  ui.edit(core::editing::SetCell{{core::editing::MatrixName::embeddings, 1}, 2, 0, 3.5});
  look([](app::View& v) { v.look.sequence = 1; });
  expect_same_value("another sequence");
  ui.key(Key::digit_1);
  ui.run(3);
  expect_same_value("another head of it");
  ui.store.dispatch(app::FollowCell{{Stage::queries, 0, 4, 1}});
  ui.run(3);
  expect_same_value("its operand");
  ui.key(Key::digit_2);
  ui.run(3);
  expect_same_value("its operand in another head");
  ui.edit(core::editing::SetHeadCount{1});
  ui.run(3);
  EXPECT_EQ(ui.store.view().look.head, 0u);
  expect_same_value("fewer heads");
  ui.store.dispatch(app::Undo{});
  ui.run(3);
  expect_same_value("as many as before");
}

TEST_F(OneHead, IsThatOfTheLayerOfAWholeModel) {
  ui.store.open(FIXTURES "/../../assets/examples/tiny_gpt", "egg jam fig and egg jam f", 2);
  support::settle(ui.store, [&] { ui.run(1); });
  look([](app::View& v) { v.look.tab = Tab::stages; });
  pin({Stage::weights, 3, 6, 2});
  for (const std::size_t layer : {3u, 0u}) {
    ui.store.dispatch(app::ShowLayer{layer});
    support::settle(ui.store, [&] { ui.run(1); });
    for (const Key key : {Key::digit_1, Key::digit_3}) {
      ui.key(key);
      ui.run(3);
      const auto& pinned = ui.store.view().selection.pinned;
      ASSERT_TRUE(pinned);
      EXPECT_EQ(pinned->head, ui.store.view().look.head) << layer;
    }
  }
}

TEST_F(OneHead, IsAnimatedAndPresented) {
  pin({Stage::masked_scores, 0, 3, 1});
  ui.store.dispatch(app::StepAnimation{1, 3});
  ui.run(2);
  ui.key(Key::digit_2);
  ui.run(2);
  const auto& animation = ui.store.view().selection.presentation.operand_animation;
  ASSERT_TRUE(animation);
  EXPECT_EQ(animation->cell, (CellRef{Stage::masked_scores, 1, 3, 1}));
  ui.key(Key::f5);
  ui.run(3);
  EXPECT_TRUE(ui.has("present/masked_scores"));
  ui.key(Key::digit_1);
  ui.run(3);
  EXPECT_EQ(ui.store.view().selection.pinned, (CellRef{Stage::masked_scores, 0, 3, 1}));
}

}  // namespace
