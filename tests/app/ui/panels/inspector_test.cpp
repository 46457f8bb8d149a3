#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "app/ui/panels/inspector/inspector_panel.hpp"
#include "app/ui/panels/stages/stages_panel.hpp"
#include "core/graph/attend.hpp"
#include "core/graph/text.hpp"
#include "tests/support/panels.hpp"
#include "tests/support/random_model.hpp"

namespace {

using app::CellRef;
using app::Key;
using core::attention::Stage;
using core::editing::MatrixName;
using gui::Panels;

/// The strip at the left and the inspector at the right, as in the window.
void draw_strip_and_inspector(const app::Frame& frame) {
  const ImVec2 size = ImGui::GetIO().DisplaySize;
  const auto draw = [&](const char* name, float left, float right, auto panel) {
    support::in_window(name, {left, 0}, {right, size.y}, [&] { panel(frame); });
  };
  draw("stages", 0, size.x - 400, app::panels::draw_stages);
  draw("inspector", size.x - 400, size.x, app::panels::draw_inspector);
}

struct Inspector : testing::Test {
  Panels ui{draw_strip_and_inspector, {1600, 1400}};

  void click_cell(Stage stage, std::size_t row, std::size_t column) {
    const auto& info = core::attention::info(stage);
    const auto trace = core::attention::attend(ui.model());
    const arma::mat& numbers = info.matrix(trace, ui.view().look.head);
    const auto rect = ui.landmarks().find(std::string("strip/") + info.name);
    ASSERT_TRUE(rect) << info.name;
    const float width = (rect->max.x - rect->min.x) / static_cast<float>(numbers.n_cols);
    const float height = (rect->max.y - rect->min.y) / static_cast<float>(numbers.n_rows);
    ui.play(support::click({rect->min.x + (static_cast<float>(column) + 0.5f) * width,
                            rect->min.y + (static_cast<float>(row) + 0.5f) * height}));
    ui.run();
  }
  void follow(const std::string& operand) {
    ui.click("inspector/" + operand);
    ui.run();
  }
  void expect_pinned(const CellRef& cell) {
    ASSERT_TRUE(ui.view().selection.pinned);
    EXPECT_STREQ(core::attention::info(ui.view().selection.pinned->stage).name,
                 core::attention::info(cell.stage).name);
    EXPECT_EQ(ui.view().selection.pinned, cell);
  }
};

TEST_F(Inspector, HidesAndShowsACellOfTheMaskByHand) {
  click_cell(Stage::weights, 3, 1);
  follow("mask");
  ASSERT_EQ(ui.model().mask.cells.size(), 1u);
  EXPECT_EQ(ui.model().mask.cells.front(), (core::attention::MaskCell{3, 1, false}));
  EXPECT_EQ(core::attention::attend(ui.model()).heads[0].weights(3, 1), 0);
  follow("mask");
  EXPECT_TRUE(ui.model().mask.cells.empty());
  click_cell(Stage::scores, 0, 5);
  follow("mask");
  EXPECT_EQ(ui.model().mask.cells.front(), (core::attention::MaskCell{0, 5, true}));
}

TEST_F(Inspector, OffersNoMaskForCellsThatAreNotBetweenTokens) {
  click_cell(Stage::queries, 2, 0);
  EXPECT_FALSE(ui.has("inspector/mask"));
}

TEST_F(Inspector, FollowsOperandsUpstreamToTheEmbeddingsAndBack) {
  click_cell(Stage::weights, 1, 0);
  expect_pinned({Stage::weights, 0, 1, 0});
  follow("step/3/line/1/a");  // exp(s_11 − max)
  expect_pinned({Stage::masked_scores, 0, 1, 1});
  follow("step/1/line/0/a");  // what is divided by √d
  expect_pinned({Stage::scores, 0, 1, 1});
  follow("step/0/line/1/b");  // the second number of the key
  expect_pinned({Stage::keys, 0, 1, 1});
  follow("step/0/line/2/a");  // the third of the embedding
  expect_pinned({Stage::embeddings, 0, 1, 2});

  ui.key(Key::backspace);
  expect_pinned({Stage::keys, 0, 1, 1});
  ui.click("inspector/back");
  expect_pinned({Stage::scores, 0, 1, 1});
  ui.key(Key::backspace);
  ui.key(Key::backspace);
  expect_pinned({Stage::weights, 0, 1, 0});
  ui.run();
  EXPECT_FALSE(ui.has("inspector/back"));
  ui.key(Key::backspace);
  expect_pinned({Stage::weights, 0, 1, 0});
  ui.key(Key::escape);
  EXPECT_FALSE(ui.view().selection.pinned);
}

TEST_F(Inspector, ForgetsTheWayBackWhenAnotherCellIsPinned) {
  click_cell(Stage::weights, 1, 0);
  follow("step/0/line/0/a");
  EXPECT_TRUE(ui.has("inspector/back"));
  click_cell(Stage::scores, 2, 2);
  EXPECT_FALSE(ui.has("inspector/back"));
  click_cell(Stage::scores, 2, 2);
  EXPECT_FALSE(ui.view().selection.pinned);
}

TEST_F(Inspector, PutsTheEditCursorOnALearnedNumber) {
  ui.look([&](auto& v) { v.look.head = 1; });
  ui.run();
  click_cell(Stage::keys, 2, 1);
  follow("step/0/line/1/b");
  expect_pinned({Stage::keys, 1, 2, 1});
  EXPECT_EQ(ui.view().look.edited.name, MatrixName::key_weight);
  ASSERT_TRUE(ui.view().selection.cursor);
  EXPECT_EQ(ui.view().selection.cursor->row, 1u);
  EXPECT_EQ(ui.view().selection.cursor->column, 3u);  // column 1 of the second head's band of two
}

TEST_F(Inspector, PutsTheEditCursorOnAnEmbedding) {
  click_cell(Stage::embeddings, 4, 2);
  expect_pinned({Stage::embeddings, 0, 4, 2});
  ui.click("inspector/edit");
  EXPECT_EQ(ui.view().look.edited.name, MatrixName::embeddings);
  ASSERT_TRUE(ui.view().selection.cursor);
  EXPECT_EQ(ui.view().selection.cursor->row, 4u);
  EXPECT_EQ(ui.view().selection.cursor->column, 2u);
}

TEST_F(Inspector, FoldsALongSumAndUnfoldsItOnAClick) {
  support::Random random(3);
  ui.show(support::model(random, 4, 40, 4, 2));
  ui.run();
  click_cell(Stage::values, 0, 0);
  const auto lines = [&] {
    return std::count_if(ui.landmarks().all().begin(), ui.landmarks().all().end(), [](const auto& mark) {
      return mark.first.starts_with("inspector/step/0/line/") && mark.first.ends_with("/a");
    });
  };
  EXPECT_EQ(lines(), 6);
  ui.click("inspector/step/0/more");
  ui.run();
  EXPECT_EQ(lines(), 40);
  ui.click("inspector/step/0/more");
  ui.run();
  EXPECT_EQ(lines(), 6);
}

TEST_F(Inspector, CopiesTheWholeDerivation) {
  click_cell(Stage::weights, 1, 0);
  ui.click("inspector/copy");
  const auto copied = ui.asked<app::CopyText>();
  ASSERT_EQ(copied.size(), 1u);
  const auto trace = core::attention::attend(ui.model());
  const auto explanation = core::explain::explain(ui.model(), trace, {Stage::weights, 0, 1, 0});
  EXPECT_EQ(copied[0].text, core::explain::plain_text(explanation, ui.model().sequences[0]));
  EXPECT_THAT(copied[0].text,
              testing::StartsWith("weights, head 0, row 1 (journey), column 0 (Your) = 0.48"));
}

TEST_F(Inspector, GoesToTheSameCellOfAnotherHeadAndDownstream) {
  click_cell(Stage::weights, 3, 2);
  follow("head/1");
  expect_pinned({Stage::weights, 1, 3, 2});
  EXPECT_EQ(ui.view().look.head, 1u);
  follow("leads/0");
  expect_pinned({Stage::dropped_weights, 1, 3, 2});
  follow("leads/0");
  EXPECT_EQ(ui.view().selection.pinned->stage, Stage::contexts);
  EXPECT_EQ(ui.view().selection.pinned->row, 3u);
  EXPECT_EQ(ui.view().selection.trail.size(), 3u);
}

}  // namespace
