// Overridden stages and values and ablated heads, in the whole program without its window.
#include <gmock/gmock.h>

#include "core/files/session.hpp"
#include "core/graph/given_model.hpp"
#include "core/out/numpy.hpp"
#include "tests/support/look.hpp"
#include "tests/support/program.hpp"
#include "tests/support/random_model.hpp"
#include "tests/support/temporary_directory.hpp"

namespace {

using app::CellRef;
using app::Key;
using app::Tab;
using app::View;
using core::attention::GivenCellAddress;
using core::attention::Model;
using enum core::attention::Stage;

struct GivenInWindow : testing::Test {
  gui::Program program;

  const Model& model() const { return program.store.model(); }
  void look(const std::function<void(View&)>& change) {
    support::look(program.store, change);
    program.run();
  }
  void pin(const CellRef& cell) {
    look([cell](View& v) { v.selection.pinned = cell; });
  }
  void start_with(const Model& start) { program.edit(core::editing::ReplaceModel{start}); }
};

TEST_F(GivenInWindow, TypesANumberOverThePinnedCellAndTakesItBack) {
  pin({scores, 0, 2, 1});
  program.key(Key::n);
  program.type("0.5");
  program.key(Key::enter);
  ASSERT_TRUE(model().given.find(GivenCellAddress{scores, 0, 0, 2, 1}));
  EXPECT_EQ(program.store.live().trace().at(Stage::scores, 0)(2, 1), 0.5);
  EXPECT_EQ(program.store.document().steps.undo_words, "number typed over Scores, row 2, column 1");
  program.click("inspector/computed");
  EXPECT_TRUE(model().given.empty());
}

TEST_F(GivenInWindow, SaysWhatIsNoNumberAndKeepsTheModel) {
  pin({weights, 0, 2, 1});
  program.click("inspector/typed");
  program.type("half");
  program.key(Key::enter);
  EXPECT_TRUE(program.store.message().is_error);
  EXPECT_THAT(program.store.message().text, testing::HasSubstr("expected a number, found \"half\""));
  EXPECT_TRUE(model().given.empty());
}

TEST_F(GivenInWindow, HasNoFieldForEmbeddingsAndMask) {
  pin({embeddings, 0, 0, 0});
  EXPECT_FALSE(program.has("inspector/typed"));
  pin({contexts, 0, 0, 0});
  EXPECT_TRUE(program.has("inspector/typed"));
}

TEST_F(GivenInWindow, SwitchesTheChosenHead) {
  program.key(Key::digit_2);
  program.key(Key::h);
  EXPECT_EQ(model().heads_off, std::vector<std::size_t>{1});
  program.click("model/head_on");
  EXPECT_TRUE(model().heads_off.empty());
}

TEST_F(GivenInWindow, KeepsAStageAndComputesItAgain) {
  pin({weights, 0, 2, 1});
  const double before = program.store.live().trace().at(Stage::weights, 0)(2, 1);
  program.key(Key::i);
  program.click("give/keep");
  ASSERT_TRUE(model().given.find(weights));
  EXPECT_FALSE(program.has("strip/queries"));
  EXPECT_FALSE(program.has("strip/scores"));
  EXPECT_TRUE(program.has("strip/weights"));
  program.edit(core::editing::SetScale{{core::attention::ScaleRule::none, 1}});
  EXPECT_EQ(program.store.live().trace().at(Stage::weights, 0)(2, 1), before);
  program.click("model/given");
  program.click("give/compute");
  EXPECT_TRUE(model().given.empty());
  EXPECT_TRUE(program.has("strip/queries"));
}

TEST_F(GivenInWindow, PastesTheChosenHeadOrAllOfThem) {
  const std::size_t n = model().n_tokens();
  std::string one = "[";
  for (std::size_t i = 0; i < n; ++i) {
    one += i > 0 ? ", [" : "[";
    for (std::size_t j = 0; j < n; ++j) one += (j > 0 ? ", " : "") + std::to_string(10 * i + j);
    one += "]";
  }
  one += "]";
  pin({scores, 0, 0, 0});
  const double other = program.store.live().trace().at(Stage::scores, 1)(2, 1);
  ImGui::SetClipboardText(one.c_str());
  program.key(Key::i);
  program.click("give/paste");
  EXPECT_EQ(program.store.live().trace().at(Stage::scores, 0)(2, 1), 21);
  EXPECT_EQ(program.store.live().trace().at(Stage::scores, 1)(2, 1), other);
  ImGui::SetClipboardText(("tensor([" + one + ", " + one + "])").c_str());
  program.key(Key::i);
  program.click("give/paste");
  EXPECT_EQ(program.store.live().trace().at(Stage::scores, 1)(2, 1), 21);
  ImGui::SetClipboardText("[[1, 2]]");
  program.key(Key::i);
  program.click("give/paste");
  EXPECT_TRUE(program.store.message().is_error);
}

TEST_F(GivenInWindow, TakesAStageFromAFile) {
  const support::TemporaryDirectory directory;
  const Model before = model();
  program.store.dispatch(app::OverrideStageFromFile{weights, directory / "nothing.npy"});
  program.run();
  EXPECT_TRUE(program.store.message().is_error);
  EXPECT_EQ(model(), before);
  std::string rows, heads;
  for (std::size_t i = 0; i < before.n_tokens(); ++i) {
    rows += i == 0 ? "[[0.25" : ", [0.25";
    for (std::size_t j = 1; j < before.n_tokens(); ++j) rows += ", 0.25";
    rows += "]";
  }
  for (std::size_t h = 0; h < before.n_heads; ++h) heads += (h == 0 ? "[" : ", ") + rows + "]";
  support::put_bytes(directory / "theirs.txt", heads + "]");
  program.store.dispatch(app::OverrideStageFromFile{weights, directory / "theirs.txt"});
  program.run();
  ASSERT_TRUE(model().given.find(weights)) << program.store.message().text;
  EXPECT_EQ(program.store.live().trace().at(Stage::weights, 1)(2, 5), 0.25);
}

TEST_F(GivenInWindow, TakesTheCountingLineOfATableForNames) {
  const support::TemporaryDirectory directory;
  const std::size_t n = model().n_tokens();
  std::string rows;
  for (std::size_t i = 0; i <= n; ++i) {
    rows += (i > 0 ? "\n" : "");
    for (std::size_t j = 0; j < n; ++j) rows += (j > 0 ? "," : "") + (i == 0 ? std::to_string(j) : "0.125");
  }
  core::attention::Model one = model();
  one.n_heads = 1, one.n_kv_heads.reset();
  program.store.dispatch(app::ApplyEdit{core::editing::ReplaceModel{one, "one head"}});
  support::put_bytes(directory / "theirs.csv", rows);
  program.store.dispatch(app::OverrideStageFromFile{weights, directory / "theirs.csv"});
  program.run();
  ASSERT_TRUE(model().given.find(weights)) << program.store.message().text;
  EXPECT_EQ(program.store.live().trace().at(Stage::weights, 0)(0, 1), 0.125);
  EXPECT_THAT(program.store.message().text, testing::HasSubstr("was taken for the names of the columns"));
}

TEST_F(GivenInWindow, DrawsEveryViewOfWeightsAlone) {
  support::Random random(61);
  core::attention::GivenStage given{weights, {}};
  for (int h = 0; h < 3; ++h) given.matrices.emplace_back(arma::mat(4, 7, arma::fill::value(1.0 / 7)));
  start_with(core::attention::model_of({given}));
  for (const Tab tab : {Tab::stages, Tab::heads, Tab::tokens, Tab::laboratory}) {
    look([tab](View& v) { v.look.tab = tab; });
    program.run();
  }
  look([](View& v) { v.look.tab = Tab::stages; });
  EXPECT_TRUE(program.has("strip/weights"));
  EXPECT_FALSE(program.has("strip/embeddings"));
  pin({weights, 2, 3, 6});
  EXPECT_TRUE(program.has("inspector/value"));
  look([](View& v) { v.look.tab = Tab::tokens, v.look.tokens.pinned_query = 3; });
  EXPECT_TRUE(program.has("tokens/key/6"));
  EXPECT_FALSE(program.has("tokens/query/4"));
}

TEST_F(GivenInWindow, ComparesAModelWithTheSameModelFromGivenWeights) {
  program.key(Key::k);
  pin({weights, 0, 0, 0});
  program.key(Key::i);
  program.click("give/keep");
  look([](View& v) { v.look.tab = Tab::compare; });
  program.run();
  EXPECT_TRUE(program.store.live_comparison().comparison());
}

}  // namespace
