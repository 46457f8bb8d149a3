// A whole model in the window: its prediction is visible in every view, and labels never vanish.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <thread>

#include "app/session/full_model_reading.hpp"
#include "app/ui/panels/layers/layers_panel.hpp"
#include "core/base/number.hpp"
#include "tests/support/drawn_texts.hpp"
#include "tests/support/lessons.hpp"
#include "tests/support/program.hpp"
#include "tests/support/waiting.hpp"

namespace {

using app::Key;
using app::Tab;

const std::string tiny_gpt = FIXTURES "/../../assets/examples/tiny_gpt";

struct WholeWindow : testing::Test {
  gui::Program ui{{1280, 800}};

  void SetUp() override {
    ui.screen.has_fonts = true;
    ui.store.apply_settings({.recent = {}, .progress = {}, .models = {support::model_of_lessons()}});
    ui.store.open(tiny_gpt, "egg jam fig and egg jam f", 2);
    settle();
  }
  void settle() {
    support::settle(ui.store, [&] { ui.run(1); });
    ui.run(2);
  }
  void look(const std::function<void(app::View&)>& change) {
    support::look(ui.store, change);
    settle();
  }
  void go_to(Tab tab) {
    look([tab](app::View& v) { v.look.tab = tab; });
  }
  const app::Prediction& next() const { return *ui.store.pending().reading->prediction(); }
  std::string text() const {
    const app::FullModelState& whole = *ui.store.pending().full_model;
    return core::experiment::whole_text(*whole.model, whole.experiment);
  }
  /// Returns all texts within a landmark, one per line.
  std::string words_in(const std::string& name) {
    const auto place = ui.rect(name);
    std::string words;
    support::TextReader reader;
    for (const support::DrawnText& t : reader.texts())
      if (t.min.x > place.min.x - 4 && t.max.x < place.max.x + 4 && t.min.y > place.min.y - 4 &&
          t.max.y < place.max.y + 4)
        words += t.text + "\n";
    return words;
  }
};

TEST_F(WholeWindow, ShowsTheNextTokenInEveryView) {
  for (const Tab tab : {Tab::layers, Tab::stages, Tab::heads, Tab::tokens, Tab::compare}) {
    go_to(tab);
    ASSERT_TRUE(ui.has("next/probability")) << static_cast<int>(tab);
    EXPECT_THAT(words_in("region/next token"), testing::HasSubstr("0.9285")) << static_cast<int>(tab);
  }
}

TEST_F(WholeWindow, MovesTheNextTokenWhileAWeightIsDragged) {
  go_to(Tab::stages);
  ui.edit(core::editing::SetCell{{core::editing::MatrixName::query_weight, 0}, 2, 51, 1.84});
  settle();
  const double now = next().chosen.now;
  EXPECT_GT(std::abs(now - 0.9285), 1e-3);
  const std::string words = words_in("region/next token");
  EXPECT_THAT(words, testing::HasSubstr("before the edits"));
  EXPECT_THAT(words, testing::HasSubstr("0.9285"));
}

/// Gaps shrink first, then maps; with up to 30 tokens and four heads, every token is labeled.
TEST_F(WholeWindow, NamesEveryRowAndColumnOfTheMaps) {
  const app::Metrics m = app::metrics({1280, 800}, 1);
  const ImVec2 room{703, 678};
  for (const std::size_t n : {14u, 24u, 30u}) {
    const auto t = app::panels::tile_layers(m, room, 4, 4, n);
    EXPECT_EQ(t.rows.step, 1u) << n;
    EXPECT_EQ(t.columns.step, 1u) << n;
    EXPECT_GT(t.rows.room, 50) << n;
    EXPECT_GT(t.columns.room, 50) << n;
    EXPECT_GE(t.map, 110) << n;
    EXPECT_LE(t.height(4), room.y) << n;
    EXPECT_LE(t.width(4), room.x) << n;
  }
  const auto many = app::panels::tile_layers(app::metrics({1600, 1000}, 1), {920, 870}, 12, 12, 24);
  EXPECT_GT(many.rows.room, 30);
  EXPECT_LE(many.height(12), 870);
  const std::string words = words_in("region/layers");
  for (const char* token : {"\nig\n", "and\n", "·e\n"}) EXPECT_THAT(words, testing::HasSubstr(token));
  EXPECT_THAT(words, testing::HasSubstr("entropy"));
}

TEST_F(WholeWindow, KeepsMeasuredRolesOfHeadsThatWereNotEdited) {
  for (; !ui.store.pending().reading->random_roles(); ui.run(1)) std::this_thread::yield();
  ui.edit(core::editing::SetCell{{core::editing::MatrixName::query_weight, 0}, 2, 51, 6});  // of head 1
  settle();
  std::string words = words_in("region/layers");
  EXPECT_THAT(words, testing::HasSubstr("measured before the edits"));
  std::size_t roles = 0;
  for (std::size_t at = 0; (at = words.find("induction ", at)) != words.npos; ++at) ++roles;
  EXPECT_EQ(roles, 4u) << "of layer 2";
}

TEST_F(WholeWindow, SaysWhichBarsAreNotComputed) {
  support::look(ui.store, [](app::View& v) { v.layers.shows_effects = true; });
  ui.run(2);
  EXPECT_TRUE(ui.has("layers/sweep"));
  ui.click("layers/sweep");
  settle();
  EXPECT_FALSE(ui.has("layers/sweep")) << "all are computed";
}

TEST_F(WholeWindow, KeepsThePromptWhenEscapeLeavesIt) {
  ui.click("whole/prompt");
  ui.key(Key::a, {.ctrl = true});
  ui.type("one two three");
  settle();
  ui.key(Key::escape);
  settle();
  EXPECT_EQ(text(), "one two three");
}

TEST_F(WholeWindow, CountsNoPromptAndNoViewAsAnEdit) {
  ui.store.dispatch(app::ReadText{"egg jam"});
  ui.store.dispatch(app::ShowLayer{1});
  settle();
  EXPECT_FALSE(ui.store.document().modified);
  ui.store.dispatch(app::ToggleLayerHead{2, 3});
  settle();
  EXPECT_TRUE(ui.store.document().modified);
}

TEST_F(WholeWindow, AblatesTheHeadsThatAreSelectedInTheResidualStream) {
  ui.click("layers/heads/2");
  settle();
  ui.key(Key::x);
  settle();
  using Heads = decltype(core::experiment::Experiment::heads_off);
  const auto off = [&] { return ui.store.pending().full_model->experiment.heads_off; };
  EXPECT_EQ(off(), (Heads{{2, 0}, {2, 1}, {2, 2}, {2, 3}}));
  ui.key(Key::z, {.ctrl = true});
  settle();
  EXPECT_TRUE(off().empty()) << "it is one step";
  ui.click("layers/mlp/2");
  settle();
  ui.key(Key::x);
  settle();
  EXPECT_TRUE(off().empty()) << "an MLP cannot be ablated";
}

TEST_F(WholeWindow, DividesTheHeightThatWholeCellsLeave) {
  const app::Metrics metrics = app::metrics({1280, 800}, 1);
  for (const std::size_t count : {7, 11, 14, 16, 20}) {
    const ImVec2 room{712, 680};
    const auto t = app::panels::tile_layers(metrics, room, 4, 4, count);
    EXPECT_LE(t.height(4), room.y) << count;
    EXPECT_LT(room.y - t.height(4), 44) << count;
  }
}

TEST_F(WholeWindow, SaysWhatWasEditedWithItsNumbers) {
  const double before = ui.store.model().projections->query.weight.at(0, 1);
  for (const double value : {0.5, 0.25})
    ui.edit(core::editing::SetCell{{core::editing::MatrixName::query_weight, 0}, 0, 1, value});
  const auto& words = ui.store.pending().full_model->experiment.layers.at(2).words;
  EXPECT_THAT(words, testing::ElementsAre(testing::EndsWith(": " + core::text::fixed(before, 4) + " → " +
                                                            core::text::fixed(0.25, 4))));
}

TEST_F(WholeWindow, OpensInStagesAtTheWeightsOfThatHead) {
  ui.double_click("layers/2.1");
  settle();
  EXPECT_EQ(ui.store.view().look.tab, Tab::stages);
  EXPECT_EQ(ui.store.view().look.head, 1u);
  const auto weights = ui.rect("strip/weights"), view = ui.rect("region/stages");
  EXPECT_GE(weights.min.y, view.min.y);
  EXPECT_LE(weights.max.y, view.max.y);
  EXPECT_THAT(words_in("region/view bar"), testing::HasSubstr("layer"));
}

TEST_F(WholeWindow, NamesTheInputOfALayer) {
  go_to(Tab::stages);
  const std::string words = words_in("region/stages");
  EXPECT_THAT(words, testing::HasSubstr("Layer input"));
  EXPECT_THAT(words, testing::HasSubstr("LayerNorm(residual)"));
}

TEST_F(WholeWindow, ChoosesTheLayerInHeadsAndTokens) {
  for (const Tab tab : {Tab::heads, Tab::tokens, Tab::stages}) {
    go_to(tab);
    ui.click("view/layer/1");
    settle();
    EXPECT_EQ(ui.store.pending().full_model->layer, 1u) << static_cast<int>(tab);
    ui.click("view/layer/2");
    settle();
  }
}

TEST_F(WholeWindow, LeadsFromFieldsThatAreFixedToThePrompt) {
  go_to(Tab::stages);
  const auto before = ui.store.model().n_tokens();
  ui.fill_in("model/tokens", "5");
  EXPECT_EQ(ui.store.model().n_tokens(), before);
  EXPECT_FALSE(ui.store.message().is_error) << "the field is disabled";
  ui.click("model/prompt");
  settle();
  EXPECT_EQ(ui.store.view().look.tab, Tab::layers);
}

TEST_F(WholeWindow, PresentsTheHeadsWithThePrediction) {
  ImGui::GetIO().DisplaySize = {1920, 1080};
  ui.run(3);
  ui.key(Key::f5);
  settle();
  EXPECT_TRUE(ui.has("layers/2.0"));
  EXPECT_FALSE(ui.has("present/weights"));
  EXPECT_THAT(words_in("next/probability"), testing::HasSubstr("0.9285"));
  ui.key(Key::f5);
  settle();
}

TEST_F(WholeWindow, NamesTheTokenThatLeadsInPlaceOfTheWatchedOne) {
  ui.store.dispatch(app::ToggleLayerHead{2, 3});
  ui.store.dispatch(app::ToggleLayerHead{2, 0});
  settle();
  const std::string words = words_in("region/next token");
  EXPECT_THAT(words, testing::HasSubstr("‘ig’"));
  EXPECT_THAT(words, testing::HasSubstr("0.0135"));
  EXPECT_THAT(words, testing::HasSubstr("now most ‘" + next().candidates.front().text + "’"));
}

TEST_F(WholeWindow, ShowsWhatEveryLayerAddsToTheResidualStream) {
  go_to(Tab::layers);
  for (int layer = 0; layer < 4; ++layer) {
    EXPECT_TRUE(ui.has("layers/heads/" + std::to_string(layer))) << layer;
    EXPECT_TRUE(ui.has("layers/mlp/" + std::to_string(layer))) << layer;
  }
  ImGui::GetIO().DisplaySize = {1600, 1000};
  settle();
  ui.click("layers/heads/2");
  settle();
  EXPECT_EQ(ui.store.pending().full_model->experiment.layer, 2u);
  std::string words = words_in("region/inspector");
  for (const char* part :
       {"Heads of layer 2", "head 2.3", "output bias", "RESIDUAL STREAM", "embedding", "MLP 3", "last norm"})
    EXPECT_THAT(words, testing::HasSubstr(part));
  EXPECT_THAT(words, testing::HasSubstr(core::text::fixed(next().logit, 2))) << "the sum closes";
  ui.click("stream/MLP 1");
  settle();
  EXPECT_THAT(words_in("region/inspector"), testing::HasSubstr("MLP of layer 1"));
  ui.key(Key::digit_2);
  settle();
  EXPECT_THAT(words_in("region/inspector"), testing::HasSubstr("Head 1.1")) << "another head takes its place";
}

TEST_F(WholeWindow, PresentsTheViewThatIsOnTheScreen) {
  ui.store.dispatch(app::AddReference{});
  const std::map<Tab, const char*> parts{
      {Tab::heads, "heads/name/3"},        {Tab::tokens, "tokens/key/13"},
      {Tab::compare, "compare/reference"}, {Tab::laboratory, "laboratory/weights"},
      {Tab::layers, "layers/2.3"},         {Tab::stages, "present/weights"}};
  for (const auto& [tab, part] : parts) {
    go_to(tab);
    ui.key(Key::f5);
    settle();
    EXPECT_TRUE(ui.store.view().selection.presentation.on);
    EXPECT_TRUE(ui.has(part)) << part;
    EXPECT_EQ(ui.has("present/heading"), tab != Tab::layers) << part;
    EXPECT_FALSE(ui.has("region/inspector")) << part;
    ui.key(Key::f5);
    settle();
    EXPECT_EQ(ui.store.view().look.tab, tab);
  }
}

TEST_F(WholeWindow, ShowsALessonBesideTheMaps) {
  const auto before = ui.rect("layers/3.3");
  ui.store.dispatch(app::StartLesson{"induction"});
  settle();
  ASSERT_TRUE(ui.store.lesson());
  EXPECT_GE(ui.rect("region/lesson").min.x, ui.rect("region/layers").max.x - 8);
  EXPECT_NEAR(ui.rect("layers/3.3").max.y, before.max.y, 40) << "the maps keep their place";
  ImGui::GetIO().DisplaySize = {1920, 1080};
  ui.key(Key::f5);
  settle();
  EXPECT_TRUE(ui.has("present/lesson"));
}

TEST_F(WholeWindow, IsGreedyAtTemperatureZero) {
  EXPECT_EQ(ui.store.view().layers.temperature, 0);
  ui.click("whole/more");
  settle();
  EXPECT_EQ(text(), "egg jam fig and egg jam fig");
  ui.click("whole/back");
  settle();
  ui.fill_in("whole/temperature", "0.8");
  settle();
  EXPECT_EQ(ui.store.view().layers.temperature, 0.8);
  ui.click("whole/more");
  settle();
  EXPECT_NE(text(), "egg jam fig and egg jam f");
}

TEST_F(WholeWindow, OffersPromptsThatShowWhatHeadsDo) {
  ui.store.dispatch(app::ReadText{"egg"});
  settle();
  ui.click("whole/examples");
  ui.run(2);
  ui.click("whole/example/Repeated phrase");
  settle();
  EXPECT_EQ(text(), "egg jam fig and egg jam f");
}

}  // namespace
