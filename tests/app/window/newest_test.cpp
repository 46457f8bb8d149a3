// The window while its pictures belong to an older model, because the newest trace is pending or failed.
#include <gmock/gmock.h>

#include "core/graph/attend.hpp"
#include "tests/support/look.hpp"
#include "tests/support/program.hpp"
#include "tests/support/random_model.hpp"

namespace {

using app::CellRef;
using app::Key;
using app::Tab;
using app::View;
using core::attention::Model;
using core::attention::Stage;
using core::editing::Edit;
using Traces = gui::Program::Traces;

constexpr std::size_t n_tokens = 200, n_heads = 8;  // too large for the window's thread

Model first_model() {
  support::Random random(71);
  return support::model(random, n_tokens, 16, 16, n_heads);
}

/// Returns every way in which the newest model can have another shape than the displayed one.
std::vector<Edit> other_shapes() {
  return {core::editing::SetHeadCount{16},     core::editing::SetHeadCount{4},
          core::editing::SetTokenCount{240},   core::editing::SetTokenCount{160},
          core::editing::AddSequence{0},       core::editing::SetOutputWidth{32},
          core::editing::SetInputWidth{20},    core::editing::SetDropoutRate{0.5},
          core::editing::SetProjections{false}};
}

/// Returns the last cell of the last head of a model.
CellRef last_cell(const Model& model) {
  return {Stage::weights, model.n_heads - 1, model.n_tokens() - 1, model.n_keys() - 1};
}

/// Returns a printed tensor of n × 1 numbers for each head.
std::string printed_column(std::size_t n, std::size_t heads) {
  std::string one = "[[1]", all = "tensor([";
  for (std::size_t i = 1; i < n; ++i) one += ", [" + std::to_string(i + 1) + "]";
  one += "]";
  if (heads == 1) return one;
  for (std::size_t h = 0; h < heads; ++h) all += (h > 0 ? ", " : "") + one;
  return all + "])";
}

struct OlderPictures : testing::TestWithParam<Traces> {
  gui::Program program{{1600, 1000}, GetParam() == Traces::fail ? 1e9 : -1};
  app::Store& store = program.store;

  void SetUp() override {
    program.edit(core::editing::ReplaceModel{first_model()});
    catch_up();
  }
  void catch_up() {
    program.set_traces(Traces::come);
    do program.run(1);
    while (!store.is_up_to_date());
    program.run();
  }
  /// Edits, so that the pictures stay those of the model before.
  void edit_without_trace(const Edit& edit) {
    program.set_traces(GetParam());
    program.edit(edit);
    ASSERT_FALSE(store.is_up_to_date());
    ASSERT_EQ(store.live().is_behind(), GetParam() == Traces::wait);
  }
  void look(const std::function<void(View&)>& change) {
    support::look(store, change);
    program.run();
  }
  std::string copied() { return ImGui::GetClipboardText(); }
  void copy_again() { program.play(support::press({Key::c, true, true})); }
  void choose(std::initializer_list<const char*> lines) {
    for (const char* line : lines) program.click(line);
  }
};

INSTANTIATE_TEST_SUITE_P(Pending, OlderPictures, testing::Values(Traces::wait, Traces::fail),
                         [](const auto& of) {
                           return of.param == Traces::wait ? "IsStillToCome" : "CouldNotBeComputed";
                         });

TEST_P(OlderPictures, AreDrawnInEveryTabWhateverOfTheNewestModelIsLookedAt) {
  for (const Edit& edit : other_shapes()) {
    SCOPED_TRACE(core::editing::describe(edit));
    const Model before = store.live().model();
    edit_without_trace(edit);
    const CellRef cell = last_cell(store.model());
    look([&](View& v) {
      v.look.sequence = store.model().sequences.size() - 1;
      v.selection.pinned = cell, v.look.head = cell.head, v.look.gutters = true;
      v.look.tokens.pinned_query = cell.row;
      v.look.edited = {core::editing::MatrixName::embeddings, v.look.sequence};
      v.selection.cursor = app::EditCursor{cell.row, store.model().d_model() - 1, true};
    });
    for (const Tab tab : {Tab::stages, Tab::heads, Tab::tokens, Tab::compare}) {
      look([&](View& v) {
        v.look.tab = tab, v.look.large = tab == Tab::stages ? std::optional(Stage::weights) : std::nullopt;
      });
      program.move_to("region/status");
    }
    EXPECT_TRUE(store.live().model() == before);
    EXPECT_LT(store.shown_view().look.head, before.n_heads);
    EXPECT_LT(store.shown_view().look.sequence, before.sequences.size());
    catch_up();
    EXPECT_EQ(store.shown_view().selection.pinned, cell);
    program.edit(core::editing::ReplaceModel{first_model()});
    catch_up();
  }
}

TEST_P(OlderPictures, StandBesideTheNewestModelWhereItIsEdited) {
  edit_without_trace(core::editing::SetTokenCount{240});
  program.click("edit/add_token");
  ASSERT_EQ(store.model().n_tokens(), 241u);
  EXPECT_EQ(store.model().sequences[0].tokens.back(), "240");
  choose({"menu/Edit", "menu/edit/add_token"});
  ASSERT_EQ(store.model().n_tokens(), 242u);
  EXPECT_EQ(store.model().sequences[0].tokens.back(), "241");
  EXPECT_EQ(program.has("status/renewal"), GetParam() == Traces::wait);
  EXPECT_EQ(store.message().is_error, GetParam() == Traces::fail);
}

TEST_P(OlderPictures, DoNotStartTheStepOfALesson) {
  program.set_traces(Traces::fail);  // a lesson's small model never waits
  store.dispatch(app::StartLesson{"000"});
  program.run();
  ASSERT_TRUE(store.lesson());
  ASSERT_FALSE(store.is_up_to_date());
  EXPECT_EQ(store.lesson()->version, 0u) << "its exhibit would be of another model's trace";
  catch_up();
  EXPECT_EQ(store.lesson()->version, store.live().version());
}

TEST_P(OlderPictures, AreNotKeptAsAStageOfTheNewestModel) {
  edit_without_trace(core::editing::SetHeadCount{16});
  look([](View& v) {
    v.forms.overridden_stage = Stage::contexts, v.forms.dialog = app::Dialog::override_stage;
  });
  program.click("give/keep");
  EXPECT_TRUE(store.model().given.empty());
  catch_up();
  program.click("give/keep");
  ASSERT_EQ(store.model().given.stages.size(), 1u) << store.message().text;
  EXPECT_EQ(store.model().given.stages[0].matrices.size(), 16u);
}

TEST_P(OlderPictures, DoNotStandInForTheOtherHeadsOfOneThatIsPasted) {
  edit_without_trace(core::editing::SetHeadCount{16});
  look([](View& v) {
    v.look.head = 15, v.forms.overridden_stage = Stage::contexts,
    v.forms.dialog = app::Dialog::override_stage;
  });
  ImGui::SetClipboardText(printed_column(n_tokens, 1).c_str());
  program.click("give/paste");
  EXPECT_TRUE(store.model().given.empty());
  catch_up();
  program.click("give/paste");
  ASSERT_EQ(store.model().given.stages.size(), 1u) << store.message().text;
  const auto& heads = store.model().given.stages[0].matrices;
  ASSERT_EQ(heads.size(), 16u);
  EXPECT_EQ((*heads[15])(n_tokens - 1, 0), n_tokens);
}

TEST_P(OlderPictures, AreNotNeededWhereAllHeadsArePasted) {
  edit_without_trace(core::editing::SetHeadCount{16});
  look([](View& v) {
    v.forms.overridden_stage = Stage::contexts, v.forms.dialog = app::Dialog::override_stage;
  });
  ImGui::SetClipboardText(printed_column(n_tokens, 16).c_str());
  program.click("give/paste");
  ASSERT_EQ(store.model().given.stages.size(), 1u) << store.message().text;
  EXPECT_EQ((*store.model().given.stages[0].matrices[15])(2, 0), 3);
}

TEST_P(OlderPictures, AreWhatKeysAndMenusCopy) {
  for (const Edit& edit : other_shapes()) {
    SCOPED_TRACE(core::editing::describe(edit));
    look([](View& v) { v.look.sequence = 0, v.look.head = n_heads - 1; });
    copy_again();
    const std::string before = copied();
    ASSERT_THAT(before, testing::HasSubstr("\t"));
    edit_without_trace(edit);
    look([&](View& v) {
      v.look.sequence = store.model().sequences.size() - 1, v.look.head = last_cell(store.model()).head;
    });
    const bool same_head = store.shown_view().look.head == n_heads - 1;
    copy_again();
    EXPECT_EQ(copied() == before, same_head);
    choose({"menu/Edit", "menu/Edit/Copy as", "menu/Edit/Copy as/Matrix", "menu/copy/matrix/tsv"});
    EXPECT_EQ(copied() == before, same_head);
    catch_up();
    program.edit(core::editing::ReplaceModel{first_model()});
    catch_up();
  }
}

TEST_P(OlderPictures, GiveTheirPinnedNumberToTheClipboardUnlessAnEditCursorIsOnTheNewestModel) {
  look([](View& v) { v.selection.pinned = CellRef{Stage::weights, 7, 159, 3}; });
  program.ctrl(Key::c);
  const std::string before = copied();
  edit_without_trace(core::editing::SetTokenCount{240});
  choose({"menu/Edit", "menu/edit/copy"});
  EXPECT_EQ(copied(), before);
  store.dispatch(app::ApplyEdit{core::editing::SetCell{{}, 239, 0, 0.625}});
  look([](View& v) { v.selection.cursor = app::EditCursor{239, 0, true}; });
  program.ctrl(Key::c);
  EXPECT_EQ(copied(), "0.625");
  copy_again();
  EXPECT_THAT(copied(), testing::HasSubstr("0.625"));
}

TEST_P(OlderPictures, LetKeysChooseAmongTheNewestHeads) {
  look([](View& v) { v.look.head = 7; });
  edit_without_trace(core::editing::SetHeadCount{16});
  program.key(Key::bracket_right);
  program.key(Key::bracket_right);
  EXPECT_EQ(store.view().look.head, 9u);
  program.key(Key::bracket_left);
  EXPECT_EQ(store.view().look.head, 8u);
}

TEST_P(OlderPictures, KeepTheEndsOfTheirColorsWhenTheseAreLocked) {
  look([](View& v) { v.look.colors.range = app::ColorRangeRule::stage; });
  edit_without_trace(core::editing::SetHeadCount{16});
  choose({"menu/View", "menu/View/Colors", "menu/colours/lock"});
  const auto& locked = store.view().look.colors.locked;
  ASSERT_TRUE(locked);
  EXPECT_TRUE(locked->contains({Stage::scores, n_heads - 1}));
  EXPECT_FALSE(locked->contains({Stage::scores, n_heads}));
}

}  // namespace
