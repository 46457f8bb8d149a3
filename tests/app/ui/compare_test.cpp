// The Compare view on the real store: user input, and the window's response.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <map>

#include "app/session/store.hpp"
#include "app/theme/imgui_compat.hpp"
#include "app/window/loop.hpp"
#include "core/editing/presets.hpp"
#include "core/files/session.hpp"
#include "core/graph/attend.hpp"
#include "tests/support/look.hpp"
#include "tests/support/program.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/waiting.hpp"

namespace {

using app::CellRef;
using app::Key;
using core::attention::Model;
using core::attention::Stage;
using core::attention::Trace;
using core::editing::MatrixName;
using core::editing::SetCell;

/// Painter that gives ImGui a texture that is never drawn, and keeps the pictures of the last frame.
struct Remembering : app::render::Painter {
  std::map<std::string, app::render::HeatmapPicture> pictures;
  ImTextureID paint(const app::render::HeatmapPicture& picture) override {
    if (std::exchange(is_new_frame, false)) pictures.clear();
    pictures[picture.place] = picture;
    return app::platform::texture_id(1);
  }
  void end_frame() override { is_new_frame = true; }

 private:
  bool is_new_frame = true;
};

struct Compare : testing::Test {
  Remembering painter;
  gui::Program ui{{1600, 1000}, app::LiveTrace::frame_ms, &painter};
  app::Store& store = ui.store;

  void press(Key key) { ui.key(key); }
  void edit(const core::editing::Edit& e) { ui.edit(e); }
  void open() { ui.click("tabs/Compare"); }
  void hold_space(bool down) {
    support::InputFrame input;
    if (down)
      input.key = app::KeyPress{Key::space};
    else
      input.released = Key::space;
    ui.play({input, {}});
  }
  /// Clicks the center of a cell of an n × n picture.
  void click_cell(const std::string& picture, std::size_t row, std::size_t column, std::size_t n) {
    const auto rect = ui.landmarks().find(picture);
    ASSERT_TRUE(rect) << picture;
    const auto middle = [n](float from, float to, std::size_t k) {
      return from + (to - from) * (static_cast<float>(k) + 0.5f) / static_cast<float>(n);
    };
    ui.play(
        support::click({middle(rect->min.x, rect->max.x, column), middle(rect->min.y, rect->max.y, row)}));
  }
  const core::compare::StageDifference& found(Stage stage) const {
    for (const auto& s : store.live_comparison().comparison()->stages)
      if (s.all.stage == stage) return s.all;
    throw std::out_of_range(core::attention::info(stage).name);
  }
};

TEST_F(Compare, NamesTheFirstStageAndTheLargestChangeOfEachAsTheEngineComputesThem) {
  const Model before = store.model();
  press(Key::k);
  edit(SetCell{{MatrixName::embeddings, 0}, 1, 2, 2.5});
  open();
  ASSERT_NE(store.live_comparison().comparison(), nullptr);
  ASSERT_NE(store.live_comparison().comparison()->first, nullptr);
  EXPECT_EQ(store.live_comparison().comparison()->first->all.stage, Stage::embeddings);
  EXPECT_TRUE(ui.has("compare/first"));

  const Trace a = core::attention::attend(before), b = core::attention::attend(store.model());
  EXPECT_EQ(found(Stage::embeddings).largest, 2.5 - (*before.sequences[0].embeddings)(1, 2));
  for (const auto& stage : core::attention::stages()) {
    if (!stage.present(before)) continue;
    const auto& d = found(stage.stage);
    double largest = 0;
    for (std::size_t h = 0; h < (stage.per_head ? 2u : 1u); ++h)
      for (std::size_t i = 0; i < 6; ++i)
        for (std::size_t j = 0; j < a.at(stage.stage, h).n_cols(); ++j)
          if (const double x = a.at(stage.stage, h)(i, j); std::isfinite(x))
            largest = std::max(largest, std::abs(x - b.at(stage.stage, h)(i, j)));
    EXPECT_EQ(d.largest, largest) << stage.name;
    EXPECT_EQ(
        std::abs(a.at(stage.stage, d.head)(d.row, d.column) - b.at(stage.stage, d.head)(d.row, d.column)),
        largest)
        << stage.name;
    EXPECT_TRUE(ui.has(std::string("compare/row/") + stage.name));
  }
}

TEST_F(Compare, ShowsWhatToDoAsLongAsThereIsNothingToCompareWith) {
  open();
  for (const char* name : {"keep", "mask", "scale", "dropout", "merge", "open"})
    EXPECT_TRUE(ui.has(std::string("reference/") + name));
  EXPECT_FALSE(ui.has("compare/first"));
  ui.click("reference/keep");
  ASSERT_NE(store.live_comparison().comparison(), nullptr);
  EXPECT_EQ(store.live_comparison().comparison()->first, nullptr) << "nothing differs yet";
  ui.click("reference/drop");
  EXPECT_TRUE(store.references().empty());
  EXPECT_FALSE(ui.has("compare/first"));
}

TEST_F(Compare, FlipsASwitchForAAndLeavesBAlone) {
  edit(core::editing::SetDropoutRate{0.5});
  const Model live = store.model();
  const std::pair<const char*, Stage> expected[] = {{"mask", Stage::mask},
                                                    {"scale", Stage::scaled_scores},
                                                    {"dropout", Stage::dropout_mask},
                                                    {"merge", Stage::concatenated}};
  ui.click("tabs/Compare");
  for (const auto& [name, stage] : expected) {
    ui.run();
    ui.click(std::string("reference/") + name);
    EXPECT_EQ(store.model(), live);
    ASSERT_NE(store.live_comparison().comparison()->first, nullptr) << name;
    EXPECT_EQ(store.live_comparison().comparison()->first->all.stage, stage);
  }
  EXPECT_EQ(store.references().size(), 4u);
  ui.click("compare/reference");
  ui.click("compare/reference/0");
  EXPECT_EQ(store.live_comparison().comparison()->first->all.stage, Stage::mask);
  EXPECT_EQ(found(Stage::masked_scores).largest, std::numeric_limits<double>::infinity());
}

TEST_F(Compare, PinsTheSameCellInAInBAndInTheDifference) {
  open();
  ui.click("reference/scale");
  for (const char* column : {"/a", "/b", "/difference"}) {
    click_cell(std::string("compare/scaled_scores") + column, 2, 1, 6);
    EXPECT_EQ(store.view().selection.pinned, (CellRef{Stage::scaled_scores, 0, 2, 1})) << column;
    press(Key::escape);
    EXPECT_FALSE(store.view().selection.pinned);
  }
}

TEST_F(Compare, GivesAAndBOneRangeAndTheDifferenceOneThatIsSymmetric) {
  open();
  ui.click("reference/scale");
  const auto& a = painter.pictures.at("compare/scaled_scores/a");
  const auto& b = painter.pictures.at("compare/scaled_scores/b");
  const auto& d = painter.pictures.at("compare/scaled_scores/difference");
  const double most =
      arma::abs(*store.live_comparison().comparison()->trace->at(core::attention::Stage::scaled_scores, 0))
          .max();  // unscaled, so larger
  EXPECT_EQ(a.low, -most);
  EXPECT_EQ(a.high, most);
  EXPECT_EQ(b.low, -most);
  EXPECT_EQ(b.high, most);
  EXPECT_EQ(d.low, -d.high);
  const arma::mat apart =
      *store.live_comparison().comparison()->trace->at(core::attention::Stage::scaled_scores, 0) -
      *store.live().trace().at(Stage::scaled_scores, 0);
  EXPECT_EQ(d.high, arma::abs(apart).max()) << "of the shown head";
}

TEST_F(Compare, ShowsTheKindOfDifferenceThatIsChosen) {
  press(Key::k);
  edit(SetCell{{MatrixName::embeddings, 0}, 1, 2, -(*store.model().sequences[0].embeddings)(1, 2)});
  open();
  const double was = -(*store.model().sequences[0].embeddings)(1, 2);
  const auto shown = [&] { return store.live_comparison().comparison()->stages.front().difference(1, 2); };
  EXPECT_EQ(shown(), 2 * was);
  ui.click("compare/kind/2");
  EXPECT_EQ(shown(), 2);
  ui.click("compare/kind/1");
  EXPECT_EQ(shown(), 2 * std::abs(was));
  ui.run();
  EXPECT_EQ(painter.pictures.at("compare/embeddings/difference").low, 0);
}

TEST_F(Compare, ShowsAInPlaceOfBInEveryViewAsLongAsSpaceIsHeld) {
  press(Key::k);
  edit(SetCell{{MatrixName::embeddings, 0}, 0, 0, 3});
  const double kept = store.references()[0].model.sequences[0].embeddings->at(0, 0);
  ASSERT_NE(kept, 3);
  for (const char* picture : {"strip/embeddings", "compare/embeddings/b"}) {
    const auto shown = [&] { return (*painter.pictures.at(picture).cells.numbers)(0, 0); };
    EXPECT_EQ(shown(), 3);
    hold_space(true);
    EXPECT_EQ(shown(), kept);
    hold_space(false);
    EXPECT_EQ(shown(), 3);
    open();
  }
}

TEST_F(Compare, ShowsNothingOfBInPlaceOfWhichAStandsThatAHasNot) {
  press(Key::k);
  hold_space(true);
  const std::size_t n = store.model().n_tokens();
  const CellRef last{Stage::weights, 1, n + 2, n + 2};
  store.dispatch(app::ApplyEdit{core::editing::SetTokenCount{n + 3}});
  support::look(store, [last](app::View& v) { v.look.head = last.head, v.selection.pinned = last; });
  support::finish_working(store);
  ui.run();
  ASSERT_TRUE(store.view().selection.shows_reference);
  EXPECT_FALSE(app::displayed_state(store).view.selection.pinned);
  hold_space(false);
  EXPECT_EQ(app::displayed_state(store).view.selection.pinned, last);
}

TEST_F(Compare, DoesNotShowAnAOfAnotherShapeInPlaceOfBAndSaysWhy) {
  press(Key::k);
  edit(core::editing::RemoveToken{5});
  hold_space(true);
  EXPECT_FALSE(store.view().selection.shows_reference);
  EXPECT_TRUE(store.message().is_error);
  EXPECT_THAT(store.message().text,
              testing::AllOf(testing::HasSubstr("A is 6×3"), testing::HasSubstr("B 5×3")));
  EXPECT_EQ(painter.pictures.at("strip/embeddings").cells.numbers,
            &*store.live().trace().at(Stage::embeddings));
}

TEST_F(Compare, ScrollsToTheStageOfARowAndPinsTheCellThatDiffersMost) {
  press(Key::k);
  edit(SetCell{{MatrixName::embeddings, 0}, 0, 0, 3});
  open();
  const auto region = ui.landmarks().find("region/compare").value();
  EXPECT_GT(ui.landmarks().find("compare/block/output")->min.y, region.max.y) << "below what fits";
  ui.click("compare/row/output");
  ui.run(3);
  EXPECT_LT(ui.landmarks().find("compare/block/output")->max.y, region.max.y + 1);
  const auto& output = found(Stage::output);
  EXPECT_EQ(store.view().selection.pinned, (CellRef{Stage::output, 0, output.row, output.column}));
  EXPECT_TRUE(ui.has("compare/pinned"));
}

TEST_F(Compare, SaysWhichStagesCannotBeComparedAndDrawsNone) {
  edit(core::editing::SetMaskMethod{core::attention::MaskMethod::renormalize});
  press(Key::k);
  edit(core::editing::SetMaskMethod{core::attention::MaskMethod::negative_infinity});
  open();
  EXPECT_EQ(found(Stage::row_sums).obstacle, "only A has this stage");
  EXPECT_TRUE(ui.has("compare/row/row_sums"));
  edit(core::editing::RemoveToken{5});
  EXPECT_EQ(found(Stage::embeddings).obstacle, "A is 6×3, B is 5×3");
  EXPECT_THAT(painter.pictures, testing::Not(testing::Contains(testing::Key("compare/embeddings/a"))));
  ui.click("compare/row/weights");
  EXPECT_FALSE(store.view().selection.pinned);
}

TEST_F(Compare, HidesNoChangeOfASmallModelHoweverTiny) {
  edit(SetCell{{MatrixName::embeddings, 0}, 1, 2, 0});
  press(Key::k);
  edit(SetCell{{MatrixName::embeddings, 0}, 1, 2, 1e-14});
  open();
  ASSERT_NE(store.live_comparison().comparison()->first, nullptr);
  EXPECT_EQ(store.live_comparison().comparison()->first->all.stage, Stage::embeddings);
  EXPECT_EQ(found(Stage::embeddings).largest, 1e-14);
}

TEST_F(Compare, NamesTheMaskFirstWhereItIsSwitchedInAModelForTheEngine) {
  edit(core::editing::SetTokenCount{200});
  ASSERT_FALSE(store.live().is_exact());
  press(Key::k);
  edit(core::editing::SetCausal{!store.model().mask.causal});
  open();
  ASSERT_NE(store.live_comparison().comparison()->first, nullptr);
  EXPECT_EQ(store.live_comparison().comparison()->first->all.stage, Stage::mask);
  EXPECT_FALSE(found(Stage::scaled_scores).differs());
  edit(SetCell{{MatrixName::embeddings, 0}, 1, 2, (*store.model().sequences[0].embeddings)(1, 2) + 1e-14});
  EXPECT_EQ(store.live_comparison().comparison()->first->all.stage, Stage::embeddings)
      << "what is copied has no rounding";
}

TEST_F(Compare, KeepsWorkingWithManyTokensAndAnyHead) {
  press(Key::k);
  edit(core::editing::SetTokenCount{64});
  press(Key::k);
  edit(SetCell{{MatrixName::embeddings, 0}, 63, 0, 1});
  ui.click("tabs/Compare");
  press(Key::bracket_right);
  EXPECT_EQ(store.live_comparison().comparison()->key.head, 1u);
  EXPECT_THAT(painter.pictures, testing::Contains(testing::Key("compare/embeddings/difference")));
  edit(core::editing::SetHeadCount{1});
  EXPECT_EQ(found(Stage::queries).obstacle, "A is 2 heads of 64×2, B is 1 head of 64×4");
}

TEST_F(Compare, TakesAFromASessionFileAndLeavesBAlone) {
  const support::TemporaryDirectory directory;
  support::put_bytes(directory / "half.json", R"({"attnscope": 1, "embeddings": [[1, 2], [3)");
  store.dispatch(app::LoadReference{directory / "half.json"});
  support::finish_reading(store);
  EXPECT_TRUE(store.message().is_error);
  EXPECT_THAT(store.message().text, testing::HasSubstr("half.json"));
  EXPECT_TRUE(store.references().empty());
  EXPECT_EQ(store.view().look.tab, app::Tab::stages);
  Model other = store.model();
  other.mask.causal = false;
  core::formats::save_session(directory / "open.json", {other, ""});
  const Model live = store.model();
  store.dispatch(app::LoadReference{directory / "open.json"});
  support::finish_reading(store);
  store.update();
  EXPECT_EQ(store.model(), live);
  EXPECT_FALSE(store.document().path.has_value());
  ASSERT_EQ(store.references().size(), 1u);
  EXPECT_EQ(store.references()[0].title, "open.json");
  EXPECT_EQ(store.live_comparison().comparison()->first->all.stage, Stage::mask);
}

TEST_F(Compare, KeepsRenamesAndDropsTheChosenA) {
  store.dispatch(app::AddReference{});
  ASSERT_EQ(store.references().size(), 1u);
  EXPECT_EQ(store.references()[0].title, core::editing::default_preset().title);
  EXPECT_EQ(store.references()[0].model, store.model());
  open();
  ui.fill_in("reference/title", "before training");
  EXPECT_EQ(store.references()[0].title, "before training");
  press(Key::k);
  press(Key::k);
  support::look(store, [](app::View& v) { v.look.compared.reference = 1; });
  store.dispatch(app::RemoveReference{});
  ASSERT_EQ(store.references().size(), 2u);
  EXPECT_EQ(store.references()[0].name, "A1");
  EXPECT_EQ(store.references()[1].name, "A3");
  press(Key::k);
  EXPECT_EQ(store.references().back().name, "A4") << "a name is never used twice";
}

}  // namespace
