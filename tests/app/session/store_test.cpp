#include "app/session/store.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "app/screen/paths.hpp"
#include "core/editing/presets.hpp"
#include "core/files/session.hpp"
#include "core/graph/attend.hpp"
#include "core/out/export.hpp"
#include "core/out/numpy.hpp"
#include "core/out/tables.hpp"
#include "tests/support/look.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/waiting.hpp"

namespace app {
namespace {

using core::editing::MatrixName;
using core::editing::SetCausal;
using core::editing::SetCell;

ApplyEdit change(double value) {
  return ApplyEdit{SetCell{{MatrixName::embeddings, 0}, 1, 2, value}};
}

TEST(Store, KnowsWhetherTheModelIsStillThePresetsEvenWhenItWasSaved) {
  const support::TemporaryDirectory directory;
  Store store;
  EXPECT_TRUE(store.document().is_preset);
  store.dispatch(change(2.5));
  support::carry_out(store, SaveFileAs{directory.path() / "changed.json"});
  EXPECT_FALSE(store.document().modified);
  EXPECT_FALSE(store.document().is_preset);
  store.dispatch(Undo{});
  EXPECT_TRUE(store.document().is_preset);
  support::carry_out(store, OpenPath{directory.path() / "changed.json"});
  store.dispatch(DiscardAndContinue{});
  EXPECT_FALSE(store.document().is_preset);
}

TEST(Store, StartsWithTheDefaultPresetComputedAndComputesWhatIsEditedAlone) {
  Store store;
  EXPECT_EQ(store.model(), core::editing::default_preset().make());
  EXPECT_EQ(store.live().trace().n_heads(), store.model().n_heads);
  EXPECT_FALSE(store.document().modified);
  const auto version = store.live().version();
  support::look(store, [](View& v) { v.look.head = 1; });
  store.update();
  EXPECT_EQ(store.live().version(), version) << "no number has changed";
  store.dispatch(change(2.5));
  store.update();
  EXPECT_GT(store.live().version(), version);
  const auto expected = core::attention::attend(store.model());
  EXPECT_TRUE(arma::approx_equal(*store.live().trace().at(core::attention::Stage::output),
                                 *expected.at(core::attention::Stage::output), "absdiff", 0));
  EXPECT_EQ(store.live().trace().at(core::attention::Stage::embeddings)(1, 2), 2.5);
}

TEST(Store, SaysWhenUndoLetsGoOfSteps) {
  Store store;
  const support::TemporaryDirectory directory;
  support::put_bytes(directory / "wide.npy",
                     core::formats::npy_bytes(arma::mat(300, 16384, arma::fill::ones)));
  support::carry_out(store, OpenPath{directory / "wide.npy"});
  core::importing::Choices choices;
  choices.embeddings_tensor = "wide";
  choices.n_heads = 1;
  support::carry_out(store, ImportTensors{choices});
  ASSERT_EQ(store.document().title, "wide.npy") << store.message().text;
  std::size_t n_edits = 0;
  const auto edit = [&] {
    // Undo keeps a block with its matrix of 39 MB.
    store.dispatch(ApplyEdit{core::editing::SetBlock{{}, 0, n_edits, arma::mat{2}}});
    store.dispatch(EndGesture{});
    ASSERT_FALSE(store.message().is_error) << store.message().text;
    ++n_edits;
  };
  while (store.message().text.empty() || n_edits == 0) {
    ASSERT_LT(n_edits, 20u);
    edit();
  }
  EXPECT_EQ(store.message().text, "Undo keeps 256 MiB; the oldest steps are dropped from now on.");
  edit();
  EXPECT_EQ(store.message().text, "") << "once is enough";
  std::size_t n_undone = 0;
  for (; store.document().steps.can_undo; ++n_undone) store.dispatch(Undo{});
  ASSERT_EQ(n_edits - n_undone, 2u);
  store.dispatch(Undo{});
  EXPECT_EQ(store.message().text, "There is nothing to undo: 2 older steps were dropped, to save memory.");
}

TEST(Store, SaysWhyAnEditIsRefusedAndKeepsTheModel) {
  Store store;
  const auto before = store.model();
  store.dispatch(ApplyEdit{core::editing::SetHeadCount{3}});
  EXPECT_EQ(store.model(), before);
  EXPECT_TRUE(store.message().is_error);
  EXPECT_NE(store.message().text.find('3'), std::string::npos);
  EXPECT_FALSE(store.document().steps.can_undo);
}

TEST(Store, AsksBeforeUnsavedWorkIsLost) {
  Store store;
  store.dispatch(change(9));
  store.dispatch(Quit{});
  EXPECT_FALSE(store.wants_to_quit());
  EXPECT_EQ(store.view().forms.dialog, Dialog::unsaved_work);
  store.dispatch(CancelQuestion{});
  EXPECT_EQ(store.view().forms.dialog, Dialog::none);
  EXPECT_FALSE(store.wants_to_quit());
  store.dispatch(LoadPreset{"004-causal"});
  EXPECT_EQ(store.view().forms.dialog, Dialog::unsaved_work);
  store.dispatch(DiscardAndContinue{});
  EXPECT_EQ(store.model(), core::editing::find_preset("004-causal")->make());
  store.dispatch(Quit{});
  EXPECT_TRUE(store.wants_to_quit());
}

TEST(Store, SavesAndOpensAgainWithWhatWasLookedAt) {
  const support::TemporaryDirectory directory;
  const auto path = directory.path() / "mine.json";
  Store store;
  store.dispatch(change(-0.125));
  support::look(store, [](View& v) {
    v.look.head = 1, v.look.tab = Tab::heads, v.selection.pinned = CellRef{Stage::scores, 1, 2, 3};
  });
  store.dispatch(SaveFileAs{path});
  EXPECT_TRUE(store.document().modified) << "until it is on the disk";
  support::finish_reading(store);
  EXPECT_FALSE(store.document().modified);
  EXPECT_EQ(store.document().title, "mine.json");

  Store other;
  other.open(path);
  EXPECT_EQ(other.model(), store.model());
  EXPECT_EQ(other.view().look.head, 1u);
  EXPECT_EQ(other.view().look.tab, Tab::heads);
  EXPECT_EQ(other.view().selection.pinned, (CellRef{Stage::scores, 1, 2, 3}));
  EXPECT_EQ(other.persistent_state().recent.front(), std::filesystem::absolute(path));
}

TEST(Store, SavesFirstWhenAskedToOrWhileItIsSavingAndThenQuits) {
  for (const bool is_asked_first : {true, false}) {
    const support::TemporaryDirectory directory;
    Store store;
    store.dispatch(change(4));
    const auto edited = store.model();
    if (is_asked_first) {
      store.dispatch(Quit{});
      store.dispatch(SaveAndContinue{});
      EXPECT_EQ(store.view().forms.dialog, Dialog::save_as);
    }
    store.dispatch(SaveFileAs{directory.path() / "kept.json"});
    if (!is_asked_first) {
      store.dispatch(Quit{});
      EXPECT_EQ(store.view().forms.dialog, Dialog::writing) << "nothing is to be asked: it is being saved";
    }
    EXPECT_FALSE(store.wants_to_quit());
    support::finish_reading(store);
    EXPECT_TRUE(store.wants_to_quit());
    Store other;
    other.open(directory.path() / "kept.json");
    EXPECT_EQ(other.model(), edited);
  }
}

TEST(Store, KeepsWhatIsBeingSavedApartFromTheFileThatIsOpenedMeanwhile) {
  const support::TemporaryDirectory directory;
  Store store;
  store.dispatch(change(4));
  store.dispatch(SaveFileAs{directory.path() / "mine.json"});
  store.dispatch(LoadPreset{"004-causal"});
  EXPECT_NE(store.document().preset, "004-causal");
  support::finish_reading(store);
  EXPECT_EQ(store.document().preset, "004-causal");
  EXPECT_FALSE(store.document().path.has_value());
  EXPECT_EQ(store.persistent_state().recent.front(),
            std::filesystem::absolute(directory.path() / "mine.json"));
}

TEST(Store, AsksTheSystemForNothingWhenANumberIsEdited) {
  int asked = 0;
  Store store([&asked] { return ++asked, std::uint64_t{1} << 40; });
  store.dispatch(ApplyEdit{core::editing::SetCell{{core::editing::MatrixName::embeddings, 0}, 0, 0, 0.5}});
  store.update();
  EXPECT_EQ(asked, 0);
}

TEST(Store, KnowsAsManyRecentFilesAsTheNextRun) {
  const support::TemporaryDirectory directory;
  Store store;
  for (int k = 0; k < 13; ++k) {
    support::carry_out(store, SaveFileAs{directory.path() / (std::to_string(k) + ".json")});
  }
  platform::write_user_state(directory.path() / "config", {{}, store.persistent_state().recent});
  EXPECT_EQ(platform::read_user_state(directory.path() / "config").recent, store.persistent_state().recent);
  EXPECT_EQ(store.persistent_state().recent.front().filename(), "12.json");
}

TEST(Store, CallsModifiedWhatWasEditedWhileItWasSaved) {
  const support::TemporaryDirectory directory;
  Store store;
  store.dispatch(change(4));
  const auto saved = store.model();
  store.dispatch(SaveFileAs{directory.path() / "mine.json"});
  store.dispatch(change(5));
  support::carry_out(store, Quit{});
  EXPECT_TRUE(store.document().modified);
  EXPECT_FALSE(store.wants_to_quit());
  EXPECT_EQ(store.view().forms.dialog, Dialog::unsaved_work);
  Store other;
  other.open(directory.path() / "mine.json");
  EXPECT_EQ(other.model(), saved);
}

TEST(Store, StaysWhenWhatIsToBeSavedCannotBe) {
  const support::TemporaryDirectory directory;
  std::ofstream(directory.path() / "file") << "mine";
  Store store;
  store.dispatch(change(4));
  store.dispatch(SaveFileAs{directory.path() / "file" / "inside.json"});
  support::carry_out(store, Quit{});
  EXPECT_FALSE(store.wants_to_quit());
  EXPECT_TRUE(store.message().is_error);
  EXPECT_TRUE(store.document().modified);
}

TEST(Store, KeepsEverythingWhenAFileIsBroken) {
  const support::TemporaryDirectory directory;
  std::ofstream(directory.path() / "half.json") << R"({"attnscope": 1, "embeddings": [[1, 2], [3)";
  Store store;
  store.dispatch(change(7));
  const auto before = store.model();
  support::carry_out(store, OpenPath{directory.path() / "half.json"});
  EXPECT_EQ(store.model(), before);
  EXPECT_TRUE(store.message().is_error);
  EXPECT_NE(store.message().text.find("half.json"), std::string::npos);
  EXPECT_EQ(store.view().forms.dialog, Dialog::none);
}

/// Number of tokens for which the scores of two heads need more than 2 GiB.
constexpr std::size_t many_tokens = 6000;

TEST(Store, AsksBeforeAModelTakesMuchMemory) {
  Store store([] { return std::uint64_t{64} << 30; });
  const auto before = store.model();
  store.dispatch(ApplyEdit{core::editing::SetTokenCount{many_tokens}});
  EXPECT_EQ(store.model(), before);
  EXPECT_EQ(store.view().forms.dialog, Dialog::memory);
  EXPECT_NE(store.view().forms.question.find("6000 tokens in 2 heads need 2."), std::string::npos)
      << store.view().forms.question;
  store.dispatch(CancelQuestion{});
  EXPECT_EQ(store.view().forms.dialog, Dialog::none);
  EXPECT_EQ(store.model(), before);
  store.dispatch(ApplyEdit{core::editing::SetTokenCount{many_tokens}});
  store.dispatch(AllowMemory{});
  EXPECT_EQ(store.model().n_tokens(), many_tokens);
  EXPECT_EQ(store.view().forms.dialog, Dialog::none);
  store.dispatch(ApplyEdit{SetCausal{false}});  // no more memory than was granted
  EXPECT_FALSE(store.model().mask.causal);
}

TEST(Store, RefusesAModelThatTheMachineHasNoMemoryFor) {
  Store store([] { return std::uint64_t{2} << 30; });
  const auto before = store.model();
  store.dispatch(ApplyEdit{core::editing::SetTokenCount{many_tokens}});
  EXPECT_EQ(store.model(), before);
  EXPECT_EQ(store.view().forms.dialog, Dialog::none);
  EXPECT_TRUE(store.message().is_error);
  EXPECT_NE(store.message().text.find("2.0 GiB are free"), std::string::npos) << store.message().text;
}

TEST(Store, ExportsInEveryFormToAFileNamedAfterIt) {
  const support::TemporaryDirectory directory;
  Store store;
  const auto bytes = [&](ExportFormat form, const char* name) {
    support::carry_out(
        store,
        ExportAs{form, ExportScope::stage, {Stage::weights, 1, 0, 0}, directory.path(), "lesson 2.json"});
    EXPECT_FALSE(store.message().is_error) << store.message().text;
    return support::bytes_of(directory.path() / name);
  };
  EXPECT_TRUE(bytes(ExportFormat::npz, "lesson-2.weights.npz").starts_with("PK"));
  EXPECT_NE(bytes(ExportFormat::svg, "lesson-2.weights.svg").find("head 1"), std::string::npos);
  EXPECT_TRUE(bytes(ExportFormat::png, "lesson-2.weights.png").starts_with("\x89PNG"));
  EXPECT_NE(bytes(ExportFormat::program, "lesson-2.py").find("torch.manual_seed(123)"), std::string::npos);
  EXPECT_EQ(core::formats::parse_session(bytes(ExportFormat::session, "lesson-2.json"), "s").model,
            store.model());
  EXPECT_TRUE(bytes(ExportFormat::npy, "weights.head1.npy").starts_with("\x93NUMPY"));
  EXPECT_EQ(directory.names().size(), 7u);  // two heads as npy
}

TEST(Store, ExportsNothingWhereItMayNotWrite) {
  const support::TemporaryDirectory directory;
  std::ofstream(directory.path() / "file") << "mine";
  Store store;
  for (const ExportFormat form :
       {ExportFormat::csv, ExportFormat::npz, ExportFormat::svg, ExportFormat::program}) {
    support::carry_out(store, ExportAs{form,
                                       ExportScope::everything,
                                       {Stage::weights, 0, 0, 0},
                                       directory.path() / "file" / "inside.x"});
    EXPECT_TRUE(store.message().is_error);
    EXPECT_NE(store.message().text.find("cannot be written"), std::string::npos) << store.message().text;
  }
  EXPECT_EQ(directory.names(), (std::set<std::string>{"file"}));
  EXPECT_EQ(support::bytes_of(directory.path() / "file"), "mine");
}

TEST(Store, LeavesAPinnedCellThatNoLongerExists) {
  Store store;
  support::look(store, [](View& v) {
    v.look.head = 1, v.selection.pinned = v.selection.menu_cell = CellRef{Stage::weights, 1, 5, 5};
  });
  ASSERT_TRUE(store.view().selection.pinned);
  store.dispatch(ApplyEdit{core::editing::RemoveToken{5}});
  EXPECT_FALSE(store.view().selection.pinned);
  EXPECT_FALSE(store.view().selection.menu_cell);
  store.dispatch(ApplyEdit{core::editing::SetHeadCount{1}});
  EXPECT_EQ(store.view().look.head, 0u);
}

}  // namespace
}  // namespace app
