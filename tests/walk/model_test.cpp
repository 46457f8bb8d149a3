// What MODEL offers, by mouse and by key.
#include <gmock/gmock.h>

#include <cmath>

#include "core/editing/presets.hpp"
#include "tests/walk/walk.hpp"

namespace walk {
namespace {

struct ModelInTheWindow : Program {
  ModelInTheWindow() { ui.sharp = false; }
};

TEST_F(ModelInTheWindow, LosesAndRegainsItsCausalMaskByMouseAndByKey) {
  ASSERT_EQ(ui.weight(0, 5), 0);
  ui.click("model/causal");
  EXPECT_FALSE(ui.model().mask.causal);
  EXPECT_GT(ui.weight(0, 5), 0);
  ui.key(Key::c);
  EXPECT_TRUE(ui.model().mask.causal);
  EXPECT_EQ(ui.weight(0, 5), 0);
}

TEST_F(ModelInTheWindow, TakesADropoutRateFromTheSliderInOneUndoStep) {
  const auto before = ui.model();
  ui.drag("model/dropout", 30, 0);
  EXPECT_GT(ui.model().dropout.rate, 0.3);
  EXPECT_TRUE(ui.has("strip/dropout_mask"));
  ui.key(Key::d);
  EXPECT_FALSE(ui.model().dropout.training);
  ui.key(Key::z, {.ctrl = true});
  ui.key(Key::z, {.ctrl = true});
  EXPECT_TRUE(same_bits(ui.model(), before));
}

TEST_F(ModelInTheWindow, ShowsTheHeadThatAKeyNames) {
  ui.sharp = true;
  ui.run();
  ASSERT_EQ(ui.model().n_heads, 2u);
  const auto first = ui.pixels("strip/weights");
  ui.key(Key::digit_2);
  EXPECT_EQ(ui.store.view().look.head, 1u);
  ui.run();
  EXPECT_NE(ui.pixels("strip/weights"), first);
  ui.key(Key::digit_3);
  EXPECT_EQ(ui.store.view().look.head, 1u) << "there is no third";
  ui.key(Key::bracket_left);
  EXPECT_EQ(ui.store.view().look.head, 0u);
  ui.key(Key::bracket_left);
  EXPECT_EQ(ui.store.view().look.head, 0u);
  ui.key(Key::bracket_right);
  EXPECT_EQ(ui.store.view().look.head, 1u);
  ui.click("view/head/0");
  EXPECT_EQ(ui.store.view().look.head, 0u);
}

TEST_F(ModelInTheWindow, GrowsToTwentyTokensAndShrinksToOne) {
  const arma::mat numbers = *ui.model().sequences[0].embeddings;
  for (std::size_t n = 7; n <= 20; ++n) {
    ui.click("edit/add_token");
    ASSERT_EQ(ui.model().n_tokens(), n);
  }
  EXPECT_TRUE(arma::approx_equal(ui.model().sequences[0].embeddings->rows(0, 5), numbers, "absdiff", 0));
  EXPECT_EQ(ui.store.live().trace().heads[0].weights.n_rows(), 20u);
  ui.fill_in("model/tokens", "3");
  EXPECT_EQ(ui.model().n_tokens(), 3u);
  ui.right_click("edit/token/1");
  ui.click("edit/token_menu/remove");
  EXPECT_EQ(ui.model().sequences[0].tokens, (std::vector<std::string>{"Your", "starts"}));
  ui.right_click("edit/token/1");
  ui.click("edit/token_menu/remove");
  ui.run();
  EXPECT_EQ(ui.model().n_tokens(), 1u);
  EXPECT_EQ(ui.weight(0, 0), 1);
}

TEST_F(ModelInTheWindow, ChangesItsWidthsAndHeadsAndKeepsTheRest) {
  const arma::mat query = *ui.model().projections->query.weight;
  ui.fill_in("model/d_in", "5");
  EXPECT_EQ(ui.model().d_model(), 5u);
  ui.fill_in("model/d_out", "6");
  EXPECT_EQ(ui.model().d_out(), 6u);
  ui.fill_in("model/heads", "3");
  EXPECT_EQ(ui.model().n_heads, 3u);
  EXPECT_TRUE(ui.has("view/head/2"));
  EXPECT_TRUE(
      arma::approx_equal(ui.model().projections->query.weight->submat(0, 0, 2, 3), query, "absdiff", 0));
  ui.fill_in("model/heads", "4");
  EXPECT_EQ(ui.model().n_heads, 3u) << "4 does not divide 6";
  EXPECT_TRUE(ui.store.message().is_error);
}

TEST_F(ModelInTheWindow, StartsAnewFromEveryPreset) {
  const auto presets = core::editing::presets();
  for (std::size_t i = 0; i < presets.size(); ++i) {
    ui.choose("model/preset", i);
    EXPECT_TRUE(ui.model() == presets[i].make()) << presets[i].name;
    EXPECT_EQ(ui.store.document().preset, presets[i].name);
  }
}

TEST_F(ModelInTheWindow, AsksBeforeAPresetReplacesUnsavedWork) {
  ui.key(Key::c);
  const auto edited = ui.model();
  ui.choose("model/preset", 0);
  EXPECT_EQ(ui.store.view().forms.dialog, app::Dialog::unsaved_work);
  EXPECT_TRUE(ui.model() == edited);
  ui.run();
  ui.click("dialog/discard");
  EXPECT_TRUE(ui.model() == core::editing::presets()[0].make());
}

}  // namespace
}  // namespace walk
