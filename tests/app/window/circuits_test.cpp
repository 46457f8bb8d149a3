// Sources of a score and two prompts in the window, on the tiny GPT.
#include <gmock/gmock.h>

#include "app/session/full_model_reading.hpp"
#include "tests/support/settled_window.hpp"

namespace {

using app::CellRef;
using app::Key;
using app::Tab;
using core::attention::Stage;
using core::transformer::PatchedPart;
using testing::HasSubstr;

struct CircuitsWindow : support::SettledWindow {
  CircuitsWindow() : SettledWindow({1280, 1100}) {}

  void SetUp() override {
    ui.store.open(FIXTURES "/../../assets/examples/tiny_gpt", "egg jam fig and egg jam f", 2);
    settle();
    support::look(ui.store, [](app::View& v) { v.look.tab = Tab::stages; });
    settle();
  }
  void pin(const CellRef& cell) { dispatch(app::PinCell{cell}); }
  const app::FullModelReading& reading() const { return *ui.store.pending().reading; }
  const core::experiment::Experiment& experiment() const { return ui.store.pending().full_model->experiment; }
  void compare(const std::string& second = "egg jam food and egg jam f") {
    dispatch(
        app::SetPrompts{core::experiment::FirstPrompt{"egg jam fig and egg jam f", "ig", "ood"}, second});
  }
};

/// Expected values: NumPy, see tests/python/check_circuits.py.
TEST_F(CircuitsWindow, SplitAScoreByItsSources) {
  pin({Stage::scaled_scores, 0, 13, 6});
  EXPECT_FALSE(ui.has("inspector/sources/sum"));
  press("inspector/sources/shown/1");
  std::string all = words();
  EXPECT_THAT(all, HasSubstr("8.5662 − row mean 1.7453 =\n6.8209\n"));
  EXPECT_THAT(all, HasSubstr("MLP 0 × MLP 0\n+6.774\n"));
  EXPECT_THAT(all, HasSubstr("220 other pairs\n−0.220\n"));
  EXPECT_THAT(all, HasSubstr("head 0.2\n+5.023\n+0.603\n"));
  press("inspector/sources/relative/1");
  all = words();
  EXPECT_THAT(all, HasSubstr("MLP 0 × MLP 0\n+9.054\n"));
  EXPECT_THAT(all, HasSubstr("sum\n+8.566\n"));
  ui.key(Key::s);
  EXPECT_FALSE(ui.has("inspector/sources/sum"));
}

TEST_F(CircuitsWindow, FollowAHeadToWhatItRead) {
  pin({Stage::weights, 0, 13, 6});
  ui.key(Key::s);
  settle();
  press("inspector/sources/part/1");
  EXPECT_EQ(ui.store.view().layers.source, "head 0.2");
  const std::string all = words();
  EXPECT_THAT(all, HasSubstr("without it the weight is 0.9695 →\n0.1413\n"));
  EXPECT_THAT(all, HasSubstr("0.9759\n"));
  press("inspector/sources/read");
  EXPECT_EQ(ui.store.pending().full_model->layer, 0u);
  EXPECT_EQ(ui.store.view().selection.pinned, (CellRef{Stage::weights, 2, 6, 5}));
}

TEST_F(CircuitsWindow, AskInLayersWhyAHeadLooksThere) {
  const CellRef largest{Stage::weights, 0, 13, 6};
  const auto in_layers = [&] {
    dispatch(app::UnpinCell{});
    dispatch(app::set<&app::Look::tab>(Tab::layers));
    EXPECT_FALSE(ui.has("inspector/sources/sum"));
  };
  const auto expect_asked = [&](const CellRef& weight) {
    settle();
    EXPECT_EQ(ui.store.view().look.tab, Tab::stages);
    EXPECT_EQ(ui.store.view().selection.pinned, weight);
    EXPECT_TRUE(ui.has("inspector/sources/sum"));
  };
  in_layers();
  ui.key(Key::s);
  expect_asked(largest);
  in_layers();
  press("head/row/0");
  expect_asked(largest);
  in_layers();
  ui.right_click("layers/0.2");  // at its middle
  press("menu/layers/why");
  expect_asked({Stage::weights, 2, 7, 7});
  EXPECT_EQ(ui.store.pending().full_model->layer, 0u);
  in_layers();
  ui.double_click("layers/0.2");
  expect_asked({Stage::weights, 2, 7, 7});
}

TEST_F(CircuitsWindow, SayWhyThereAreNoSources) {
  ui.key(Key::s);
  pin({Stage::scaled_scores, 0, 3, 6});
  EXPECT_THAT(words(), HasSubstr("This key is masked"));
  ui.store.dispatch(app::ToggleLayerHead{0, 2});
  settle();
  EXPECT_THAT(words(), HasSubstr("Discard the edits"));
}

/// Expected values: NumPy, as above.
TEST_F(CircuitsWindow, PatchASecondPrompt) {
  compare();
  EXPECT_EQ(ui.store.view().look.tab, Tab::layers);
  ASSERT_TRUE(reading().watched());
  EXPECT_NEAR(reading().watched()->first, 6.539, 1e-3);
  EXPECT_NEAR(reading().watched()->now, -13.729, 1e-3);
  ASSERT_TRUE(reading().patches().of({}));
  EXPECT_NEAR(reading().patches().of({})->recovered(2, 0), 0.363, 5e-4);
  EXPECT_THAT(words(), HasSubstr("0.36\n"));
  EXPECT_THAT(words(), HasSubstr("1 token differs"));
  press("prompts/map/2/0");
  EXPECT_EQ(experiment().patches, (std::set<core::transformer::Patch>{{2, PatchedPart::head, 0}}));
  EXPECT_NEAR(reading().watched()->now, -6.3796, 1e-3);
  EXPECT_THAT(words(), HasSubstr("recovered 0.363\n"));
  EXPECT_THAT(words(), HasSubstr("head 2.0 from A\n"));
  ui.key(Key::p);  // the click selected the head
  settle();
  EXPECT_TRUE(experiment().patches.empty());
  ui.ctrl(Key::z);
  settle();
  EXPECT_EQ(experiment().patches.size(), 1u);
  press("whole/edit/head 2.0");
  EXPECT_TRUE(experiment().patches.empty());
  press("prompts/end");
  EXPECT_EQ(experiment().text, "egg jam fig and egg jam f");
  EXPECT_FALSE(experiment().first);
}

TEST_F(CircuitsWindow, PatchByDraggingAHeadOntoB) {
  compare();
  press("view/maps/0");
  EXPECT_EQ(ui.store.view().layers.maps, app::LayerMaps::before);
  const ImVec2 from = ui.center("layers/2.3"), to = ui.center("view/maps/1");
  ui.drag("layers/2.3", to.x - from.x, to.y - from.y);
  settle();
  EXPECT_EQ(experiment().patches, (std::set<core::transformer::Patch>{{2, PatchedPart::head, 3}}));
  ui.key(Key::b);
  EXPECT_EQ(ui.store.view().layers.maps, app::LayerMaps::change);
}

/// Stages show a patched head as given cells, and its layer cannot be edited meanwhile.
TEST_F(CircuitsWindow, ShowAPatchedHeadInStages) {
  compare();
  dispatch(app::TogglePatch{{2, PatchedPart::head, 3}});
  EXPECT_EQ(ui.store.model().given.cells.size(), 14 * 32u);
  const core::editing::MatrixRef query{core::editing::MatrixName::query_weight};
  dispatch(app::ApplyEdit{core::editing::SetCell{query, 0, 0, 1}});
  EXPECT_EQ(ui.store.message().text, "Layer 2 cannot be edited while a part of its attention is patched.");
  EXPECT_TRUE(experiment().layers.empty());
}

TEST_F(CircuitsWindow, PatchesThroughAReceiver) {
  compare();
  support::look(ui.store, [](app::View& v) { v.layers.patches.receiver = {2, PatchedPart::queries, 0}; });
  settle();
  const auto* map = reading().patches().of(app::plan_of(ui.store.view().layers.patches));
  ASSERT_TRUE(map);
  EXPECT_EQ(map->recovered.n_rows, 2u);
  EXPECT_THAT(words(), HasSubstr("queries 2.0"));
}

/// The map, in float64, and the displayed pass agree on what a patch between aligned tokens recovers.
TEST_F(CircuitsWindow, AlignPromptsOfOtherLengthsByHand) {
  compare("egg jam food and and egg jam f");
  EXPECT_THAT(words(), HasSubstr("13 of 15 tokens of B are aligned with A."));
  const ImVec2 from = ui.center("prompts/a/6"), to = ui.center("prompts/b/6");
  ui.drag("prompts/a/6", to.x - from.x, to.y - from.y);
  settle();
  ASSERT_EQ(experiment().first->aligned.size(), 14u);
  EXPECT_EQ(experiment().first->aligned[6], (core::experiment::IndexPair{6, 6}));
  dispatch(app::TogglePatch{{1, PatchedPart::values, 2}});
  const double now = reading().watched()->recovered();
  support::look(ui.store, [](app::View& v) { v.layers.patches.part = 4; });
  settle();
  const auto* map = reading().patches().of(app::plan_of(ui.store.view().layers.patches));
  ASSERT_TRUE(map);
  EXPECT_NEAR(now, map->recovered(1, 2), 1e-5);
  EXPECT_GT(std::abs(now), 1e-4);
  dispatch(app::TogglePatch{{1, PatchedPart::pattern, 2}});
  EXPECT_EQ(ui.store.message().text, "pattern 1.2: expected prompts that are aligned one by one");
  dispatch(app::TogglePatch{{1, PatchedPart::mlp, 0, 7}});
  EXPECT_THAT(ui.store.message().text, HasSubstr("position that is aligned"));
  press("view/maps/2");
  EXPECT_EQ(ui.store.view().layers.maps, app::LayerMaps::change);
}

TEST_F(CircuitsWindow, SayWhatIsWrongWithTheAnswer) {
  dispatch(app::SetPrompts{core::experiment::FirstPrompt{"egg jam fig", "egg", ""}, "egg jam food"});
  EXPECT_EQ(reading().watched()->error, "answer: expected one token, got 3: 'e', 'g', 'g'");
}

}  // namespace
