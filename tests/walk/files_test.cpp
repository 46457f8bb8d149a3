// Saving, opening, leaving, and files that are broken.
#include <gmock/gmock.h>

#include "core/editing/presets.hpp"
#include "core/files/session.hpp"
#include "tests/walk/walk.hpp"

namespace walk {
namespace {

using app::Dialog;
using testing::HasSubstr;

struct Files : Program {
  Files() { ui.sharp = false; }
  const std::string file = (directory / "work.json").string();
  Dialog dialog() const { return ui.store.view().forms.dialog; }
  void change() {
    ui.drag("edit/cell/2/0", 60, 0);
    ASSERT_TRUE(ui.store.document().modified);
  }
  void save_as(const std::string& path) {
    ui.key(Key::s, {.ctrl = true, .shift = true});
    ui.fill_in("browser/name", path);
  }
  void open(const std::string& path) {
    ui.key(Key::o, {.ctrl = true});
    ui.fill_in("browser/name", path);
  }
};

TEST_F(Files, SavedAndOpenedAgainGiveAnEqualModel) {
  change();
  ui.click("model/causal");
  ui.click("model/bias_k");
  const auto saved = ui.model();
  ui.key(Key::s, {.ctrl = true});
  EXPECT_EQ(dialog(), Dialog::save_as) << "it has no file yet";
  ui.fill_in("browser/name", file);
  EXPECT_EQ(dialog(), Dialog::none);
  EXPECT_FALSE(ui.store.document().modified);
  EXPECT_EQ(ui.store.document().title, "work.json");

  ui.choose("model/preset", 0);
  ASSERT_FALSE(ui.model() == saved);
  open(file);
  EXPECT_TRUE(same_bits(ui.model(), saved));
  EXPECT_EQ(dialog(), Dialog::none);
  EXPECT_FALSE(ui.store.document().steps.can_undo);
}

TEST_F(Files, SaveWritesToTheFileThatWasOpened) {
  save_as(file);
  change();
  ui.key(Key::s, {.ctrl = true});
  EXPECT_EQ(dialog(), Dialog::none);
  EXPECT_TRUE(same_bits(core::formats::load_session(file).model, ui.model()));
  EXPECT_EQ(directory.names(), std::set<std::string>{"work.json"});
}

TEST_F(Files, ChosenInTheListAreOpened) {
  core::formats::save_session(directory / "other.json",
                              {core::editing::find_preset("000-causal")->make(), ""});
  ui.store.dispatch(app::BrowseTo{directory.path()});
  ui.key(Key::o, {.ctrl = true});
  ui.double_click("browser/entry/other.json");
  EXPECT_EQ(dialog(), Dialog::none);
  EXPECT_EQ(ui.store.document().title, "other.json");
  EXPECT_TRUE(ui.model() == core::editing::find_preset("000-causal")->make());
}

TEST_F(Files, KeepTheirNameWhileAFolderIsLookedFor) {
  std::filesystem::create_directory(directory / "inner");
  ui.store.dispatch(app::BrowseTo{directory.path()});
  ui.key(Key::s, {.ctrl = true});
  ui.double_click("browser/entry/inner");
  ui.click("dialog/confirm");
  EXPECT_EQ(directory.names(), (std::set<std::string>{"inner", "inner/multi-head.json"}));
}

TEST_F(Files, AreSavedByTheKeyboardAlone) {
  ui.store.dispatch(app::BrowseTo{directory.path()});
  ui.key(Key::s, {.ctrl = true});
  ui.type("typed");
  ui.key(Key::enter);
  EXPECT_EQ(directory.names(), std::set<std::string>{"typed.json"});
}

TEST_F(Files, AreReplacedOnlyAfterAQuestion) {
  support::put_bytes(file, "precious");
  save_as(file);
  EXPECT_EQ(support::bytes_of(file), "precious");
  ui.run();
  ui.click("dialog/keep");
  EXPECT_EQ(support::bytes_of(file), "precious");
  ui.click("dialog/confirm");
  ui.click("dialog/replace");
  EXPECT_EQ(dialog(), Dialog::none);
  EXPECT_TRUE(core::formats::load_session(file).model == ui.model());
}

TEST_F(Files, ThatAreBrokenLeaveEverythingAsItWas) {
  support::put_bytes(file, R"({"attnscope": 1, "embeddings": [[1, 2], [3]]})");
  change();
  const auto before = ui.model();
  const auto words = ui.store.document().steps.undo_words;
  open(file);
  EXPECT_TRUE(same_bits(ui.model(), before));
  EXPECT_EQ(ui.store.document().steps.undo_words, words);
  EXPECT_TRUE(ui.store.document().modified);
  EXPECT_TRUE(ui.store.message().is_error);
  EXPECT_THAT(ui.store.message().text, HasSubstr(file));
  EXPECT_THAT(ui.store.message().text, HasSubstr("embeddings[1]"));
  EXPECT_EQ(dialog(), Dialog::open) << "so that another can be chosen";
}

TEST_F(Files, ThatCannotBeOpenedGiveTheKeyboardBackForAnotherName) {
  support::put_bytes(directory / "broken.json", "{");
  open((directory / "broken.json").string());
  ui.run(6);
  EXPECT_TRUE(ui.store.message().is_error);
  ui.type("other.json");
  ui.run();
  ASSERT_TRUE(ui.store.view().forms.typed);
  EXPECT_EQ(ui.store.view().forms.typed->text, "other.json") << "what was typed before is written over";
}

TEST_F(Files, ThatCannotBeWrittenKeepTheDialogAndSayWhere) {
  change();
  save_as((directory / "missing/work.json").string());
  EXPECT_EQ(dialog(), Dialog::save_as);
  EXPECT_TRUE(ui.store.document().modified);
  EXPECT_THAT(ui.store.message().text, HasSubstr("missing/work.json"));
  EXPECT_TRUE(directory.names().empty());
}

struct Closing : Files {
  void SetUp() override {
    change();
    edited = ui.model();
    ui.ask_to_close();
    ASSERT_EQ(dialog(), Dialog::unsaved_work);
    ASSERT_FALSE(ui.store.wants_to_quit());
  }
  core::attention::Model edited;
};

TEST_F(Closing, CancelKeepsTheWindowAndTheWork) {
  ui.click("dialog/cancel");
  EXPECT_EQ(dialog(), Dialog::none);
  EXPECT_FALSE(ui.store.wants_to_quit());
  EXPECT_TRUE(same_bits(ui.model(), edited));
  ui.ask_to_close();
  EXPECT_EQ(dialog(), Dialog::unsaved_work) << "it asks each time";
}

TEST_F(Closing, EscapeKeepsTheWindow) {
  ui.key(Key::escape);
  EXPECT_EQ(dialog(), Dialog::none);
  EXPECT_FALSE(ui.store.wants_to_quit());
}

TEST_F(Closing, DiscardQuits) {
  ui.click("dialog/discard");
  EXPECT_TRUE(ui.store.wants_to_quit());
}

TEST_F(Closing, SaveAsksForANameSavesAndQuits) {
  ui.click("dialog/save");
  EXPECT_EQ(dialog(), Dialog::save_as);
  EXPECT_FALSE(ui.store.wants_to_quit());
  ui.run();
  ui.fill_in("browser/name", file);
  EXPECT_TRUE(ui.store.wants_to_quit());
  EXPECT_TRUE(same_bits(core::formats::load_session(file).model, edited));
}

TEST_F(Closing, ANameNotGivenAfterAllDoesNotQuit) {
  ui.click("dialog/save");
  ui.run();
  ui.click("dialog/cancel");
  save_as(file);
  EXPECT_FALSE(ui.store.wants_to_quit()) << "saving later is saving, not leaving";
}

TEST_F(Files, WithoutChangesCloseAtOnce) {
  ui.ask_to_close();
  EXPECT_TRUE(ui.store.wants_to_quit());
}

}  // namespace
}  // namespace walk
