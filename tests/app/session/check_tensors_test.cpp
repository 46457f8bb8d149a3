// Injected bugs, and a user's tensors as B of the comparison, in the whole program.
#include <gmock/gmock.h>

#include <fstream>

#include "app/session/comparing.hpp"
#include "core/graph/injected_bugs.hpp"
#include "core/graph/model_changes.hpp"
#include "core/graph/stages.hpp"
#include "core/out/export.hpp"
#include "tests/support/program.hpp"
#include "tests/support/temporary_directory.hpp"

namespace {

using core::attention::Model;
using core::attention::Stage;
using testing::ElementsAre;

struct CheckTensors : testing::Test {
  gui::Program program;
  support::TemporaryDirectory dir;

  /// Writes stages of the model with a deviation (or none for "") to a folder of CSV and returns its path.
  std::filesystem::path tensors(const char* mistake, std::vector<std::string> stages) {
    const Model& model = program.store.model();
    const auto* row = core::bugs::find_offered_bug(mistake);
    core::formats::export_stages(row ? injected(*row, model) : model, dir / "theirs",
                                 {.stages = std::move(stages)});
    return dir / "theirs";
  }
  void ask(const app::Command& command) {
    program.store.dispatch(command);
    program.run();
  }
  void check(const std::filesystem::path& path) { ask(app::CheckTensors{path}); }
  void click(const std::string& name) {
    program.click(name);
    program.run();
  }
  const app::ReferenceComparison& comparison() const { return *program.store.live_comparison().comparison(); }
  const app::TensorCheck& found() const { return *comparison().tensors; }
};

TEST_F(CheckTensors, BecomeBWithTheFirstDifferenceAndItsCause) {
  check(tensors("no_scale", {"queries", "scaled_scores", "weights"}));
  ASSERT_EQ(program.store.view().look.tab, app::Tab::compare);
  EXPECT_THAT(found().report.causes(), ElementsAre("no_scale"));
  EXPECT_EQ(comparison().stages.size(), 3u);
  EXPECT_EQ(comparison().first->all.stage, Stage::scaled_scores);
  EXPECT_TRUE(program.has("compare/show_mistake/0"));
}

TEST_F(CheckTensors, SayWhatOfAFolderWasLeftOutAndAgreeWhenTheyAreRight) {
  const auto folder = tensors("no_scale", {"weights"});
  support::put_bytes(folder / "scores.csv", "1,x\n");
  check(folder);
  EXPECT_THAT(program.store.message().text,
              testing::HasSubstr(". Left out: scores.csv: line 1, column 2: expected"));
  EXPECT_EQ(comparison().stages.size(), 1u);
  std::filesystem::remove(folder / "scores.csv");
  check(tensors("", {"weights", "output"}));
  EXPECT_TRUE(found().report.agrees);
  EXPECT_EQ(comparison().first, nullptr);
}

TEST_F(CheckTensors, MistakeIsShownInTheModelAndUndone) {
  const Model right = program.store.model();
  check(tensors("no_scale", {"weights"}));
  click("compare/show_mistake/0");
  EXPECT_EQ(program.store.model().scale.rule, core::attention::ScaleRule::none);
  EXPECT_TRUE(found().report.agrees);
  EXPECT_EQ(program.store.document().steps.undo_words, "bug: no scale");
  ask(app::Undo{});
  EXPECT_EQ(program.store.model(), right);
  EXPECT_FALSE(found().report.agrees);
  EXPECT_FALSE(found().searched);
  click("compare/search");
  EXPECT_THAT(found().report.causes(), ElementsAre("no_scale"));
}

TEST_F(CheckTensors, ThatNoCauseExplainsAreDescribed) {
  const auto folder = tensors("", {"output"});
  std::ifstream before(folder / "output.csv");
  std::vector<std::string> lines;
  for (std::string line; std::getline(before, line);) lines.push_back(line);
  const std::size_t last = lines.back().rfind(',') + 1;  // the last number of the last row
  lines.back().replace(last, std::string::npos, std::to_string(std::stod(lines.back().substr(last)) + 1));
  std::ofstream after(folder / "output.csv");
  for (const std::string& line : lines) after << line << "\n";
  after.close();
  check(folder);
  EXPECT_FALSE(found().report.agrees);
  EXPECT_THAT(found().report.causes(), testing::IsEmpty());
  EXPECT_EQ(found().report.pattern, "only one number");
  EXPECT_TRUE(program.has("compare/pattern"));
}

TEST_F(CheckTensors, OfWhichNoneFitsAreStillSearchedWhereOtherHeadsMayExplainThem) {
  const Model right = program.store.model();
  const Model other = core::attention::with_heads(right, right.d_out());
  ASSERT_NE(other, right);
  core::formats::export_to(other, dir / "theirs.npz", {.stages = {"weights"}, .archive = true});
  check(dir / "theirs.npz");
  EXPECT_THAT(found().report.causes(), ElementsAre("n_heads_other"));
  click("compare/show_mistake/0");
  ask(app::Undo{});
  EXPECT_FALSE(found().searched);
  ASSERT_TRUE(program.has("compare/search"));
  click("compare/search");
  EXPECT_THAT(found().report.causes(), ElementsAre("n_heads_other"));
}

TEST_F(CheckTensors, OfUnknownNamesAreMatchedByHand) {
  const auto folder = tensors("no_mask", {"weights", "output"});
  std::filesystem::rename(folder / "output.csv", folder / "frobnicated.csv");
  check(folder);
  ASSERT_EQ(found().matched.left_out.size(), 1u);
  program.click("compare/match");
  EXPECT_TRUE(program.has("match/0"));
  ask(app::MapTensor{"frobnicated", "output"});
  EXPECT_TRUE(found().matched.left_out.empty());
  EXPECT_EQ(comparison().stages.back().all.stage, Stage::output);
}

TEST_F(CheckTensors, OfAnotherShapeDifferInTheWindowToo) {
  const auto folder = tensors("", {"weights", "output"});
  support::put_bytes(folder / "queries.csv", "1,2,3\n");
  check(folder);
  EXPECT_FALSE(found().report.agrees);
  EXPECT_EQ(found().report.first_difference()->stage, Stage::queries);
  EXPECT_TRUE(program.has("compare/unfit"));
  ask(app::MapTensor{"queries", ""});
  EXPECT_TRUE(found().report.agrees);
  EXPECT_FALSE(program.has("compare/unfit"));
}

TEST_F(CheckTensors, AreReadInTheLayoutAndOfTheLayerThatAreChosen) {
  const auto folder = tensors("", {"weights", "output"});
  for (const char* name : {"layers.0.x", "layers.1.x"})
    std::filesystem::copy(folder / "output.csv", dir / name);
  const auto wrong = tensors("no_scale", {"output"});
  std::filesystem::create_directory(dir / "dump");
  std::filesystem::rename(wrong / "output.csv", dir / "dump" / "layers.0.output.csv");
  std::filesystem::rename(dir / "layers.1.x", dir / "dump" / "layers.1.output.csv");
  check(dir / "dump");
  EXPECT_FALSE(found().report.agrees) << "the first, unasked";
  EXPECT_TRUE(program.has("compare/notes"));
  program.click("compare/match");
  program.click("match/layer");
  click("match/layer/1");
  EXPECT_TRUE(found().report.agrees);
  EXPECT_EQ(found().matched.layer, 1u);
  program.click("match/layout");
  click("match/layout/2");
  EXPECT_EQ(program.store.references().back().layout, "bthd");
  EXPECT_EQ(program.store.references().back().layer, "layers.1");
}

TEST_F(CheckTensors, WhoseNamesSayNothingAreRefusedAndNothingIsKept) {
  support::put_bytes(dir / "frobnicated.csv", "1,2\n3,4\n");
  check(dir / "frobnicated.csv");
  EXPECT_TRUE(program.store.message().is_error);
  EXPECT_TRUE(program.store.references().empty());
}

TEST_F(CheckTensors, StayWhenTheModelNoLongerFitsThem) {
  check(tensors("no_scale", {"weights"}));
  program.edit(core::editing::RemoveToken{0});
  program.run();
  ASSERT_NE(program.store.live_comparison().comparison(), nullptr);
  EXPECT_FALSE(found().report.agrees);
}

TEST_F(CheckTensors, AreAskedForByKeyAndMenu) {
  program.ctrl(app::Key::k);
  EXPECT_EQ(program.store.view().forms.dialog, app::Dialog::open_tensors);
  EXPECT_TRUE(program.has("dialog/folder"));
}

TEST_F(CheckTensors, MistakesAreSwitchesInTheModelMenu) {
  const Model right = program.store.model();
  const auto choose = [&](const char* name) {
    program.click("menu/Model");
    program.click("menu/Model/Inject a bug");
    const core::attention::Stage first = core::bugs::find_bug(name)->texts.first;
    program.click(std::string("menu/Model/Inject a bug/") + core::attention::info(first).title);
    click(std::string("menu/mistake/") + name);
  };
  choose("softmax_over_queries");
  EXPECT_TRUE(program.store.model().has_bug("softmax_over_queries"));
  EXPECT_TRUE(program.has("model/mend"));
  choose("softmax_over_queries");
  EXPECT_EQ(program.store.model(), right);
  choose("mask_shows_next");
  click("model/mend");
  EXPECT_EQ(program.store.model(), right);
  EXPECT_FALSE(program.has("model/mend"));
}

}  // namespace
