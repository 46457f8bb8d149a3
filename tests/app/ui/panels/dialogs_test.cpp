#include <gmock/gmock.h>

#include <fstream>

#include "app/session/exporting.hpp"
#include "app/session/opening.hpp"
#include "tests/app/ui/panels/side_panels.hpp"
#include "tests/support/panels.hpp"
#include "tests/support/temporary_directory.hpp"

namespace {

using app::Dialog;
using app::Key;
using gui::Panels;
namespace fs = std::filesystem;

struct Dialogs : testing::Test {
  support::TemporaryDirectory directory;
  Panels ui{gui::draw_side_panels};

  void SetUp() override {
    fs::create_directories(directory.path() / "inner");
    std::ofstream(directory.path() / "one.json") << "{}";
    std::ofstream(directory.path() / "table.csv") << "1,2\n";
    std::ofstream(directory.path() / "picture.png") << "no numbers";
  }
  void show(Dialog dialog) {
    ui.look([&](auto& v) { v.forms.browser = app::browse(directory.path(), ""), v.forms.dialog = dialog; });
    ui.run(4);
  }
  void type_name(const std::string& name) {
    ui.click("browser/name");
    ui.type(name);
  }
};

TEST_F(Dialogs, OpenListsWhatCanBeOpenedAndDirectoriesOnly) {
  show(Dialog::open);
  EXPECT_TRUE(ui.has("browser/entry/inner"));
  EXPECT_TRUE(ui.has("browser/entry/one.json"));
  EXPECT_TRUE(ui.has("browser/entry/table.csv"));
  EXPECT_FALSE(ui.has("browser/entry/picture.png"));
}

TEST_F(Dialogs, OpenTakesADoubleClickedFile) {
  show(Dialog::open);
  ui.double_click("browser/entry/one.json");
  ASSERT_GE(ui.asked<app::OpenFile>().size(), 1u);
  EXPECT_EQ(ui.asked<app::OpenFile>()[0].path, directory.path() / "one.json");
}

TEST_F(Dialogs, OpenTakesAChosenNameWithItsButton) {
  show(Dialog::open);
  ui.click("dialog/confirm");
  EXPECT_TRUE(ui.asked<app::OpenFile>().empty()) << "nothing is chosen yet";
  ui.click("browser/entry/one.json");
  EXPECT_EQ(ui.view().forms.browser.name, "one.json");
  ui.click("dialog/confirm");
  ASSERT_EQ(ui.asked<app::OpenFile>().size(), 1u);
  EXPECT_EQ(ui.asked<app::OpenFile>()[0].path, directory.path() / "one.json");
}

TEST_F(Dialogs, WalkThroughDirectories) {
  show(Dialog::open);
  ui.double_click("browser/entry/inner");
  EXPECT_EQ(ui.view().forms.browser.directory, directory.path() / "inner");
  ui.click("browser/parent");
  EXPECT_EQ(ui.view().forms.browser.directory, directory.path());
}

TEST_F(Dialogs, GoOnTypingInAFolderWhoseNameWasTyped) {
  show(Dialog::open);
  type_name("inner");
  ui.key(Key::enter);
  ui.run(3);
  ASSERT_EQ(ui.view().forms.browser.directory, directory.path() / "inner");
  EXPECT_TRUE(ImGui::GetIO().WantTextInput);
  ui.type("n");
  EXPECT_EQ(ui.view().forms.typed->text, "n");
}

TEST_F(Dialogs, SaveAsTakesATypedNameWithEnter) {
  show(Dialog::save_as);
  type_name("new");
  ui.key(Key::enter);
  ASSERT_EQ(ui.asked<app::SaveFileAs>().size(), 1u);
  EXPECT_EQ(ui.asked<app::SaveFileAs>()[0].path, directory.path() / "new.json");
}

TEST_F(Dialogs, SaveAsAsksBeforeItReplacesAFile) {
  show(Dialog::save_as);
  type_name("one");
  ui.key(Key::enter);
  EXPECT_TRUE(ui.asked<app::SaveFileAs>().empty());
  ASSERT_TRUE(ui.has("dialog/replace"));
  ui.click("dialog/keep");
  EXPECT_FALSE(ui.has("dialog/replace"));
  ui.click("dialog/confirm");
  ui.click("dialog/replace");
  ASSERT_EQ(ui.asked<app::SaveFileAs>().size(), 1u);
  EXPECT_EQ(ui.asked<app::SaveFileAs>()[0].path, directory.path() / "one.json");
}

TEST_F(Dialogs, ExportProposesANameOfDocumentStageHeadAndForm) {
  using enum app::ExportWhat;
  app::ExportAs e;
  e.document = "004-causal", e.matrix = {core::attention::Stage::scores, 1, 0, 0};
  const auto name = [&](app::ExportForm form, app::ExportWhat what) {
    e.form = form, e.what = what;
    return app::proposed_name(e);
  };
  EXPECT_EQ(name(app::ExportForm::csv, matrix), "004-causal.scores.head1.csv");
  EXPECT_EQ(name(app::ExportForm::csv, everything), "004-causal") << "a folder of files";
  EXPECT_EQ(name(app::ExportForm::npz, matrix), "004-causal.scores.npz") << "an archive holds whole stages";
  EXPECT_EQ(name(app::ExportForm::pdf, stage), "004-causal.scores.pdf");
  EXPECT_EQ(name(app::ExportForm::png, everything), "004-causal.png");
  EXPECT_EQ(name(app::ExportForm::session, matrix), "004-causal.json");
  EXPECT_EQ(name(app::ExportForm::program, matrix), "004-causal.py");
  EXPECT_EQ(app::stem_of("my model: a/b *.safetensors"), "b");
  EXPECT_EQ(app::stem_of("Your journey, two heads"), "Your-journey-two-heads");
  EXPECT_EQ(app::stem_of("…"), "…");
  EXPECT_EQ(app::stem_of("??"), "attention");
}

TEST_F(Dialogs, ExportNeverWritesOneFormIntoAFileOfAnother) {
  app::ExportAs e;
  const auto planned = [&](app::ExportForm form, const char* name) {
    e.form = form, e.path = directory.path() / name, e.document = "d";
    return app::planned_files(ui.model(), e).front().filename().string();
  };
  EXPECT_EQ(planned(app::ExportForm::csv, "mine.json"), "mine.csv");
  EXPECT_EQ(planned(app::ExportForm::png, "mine.svg"), "mine.png");
  EXPECT_EQ(planned(app::ExportForm::png, "mine"), "mine.png");
  EXPECT_EQ(planned(app::ExportForm::csv, "mine.txt"), "mine.txt") << "a wish of one's own";
  EXPECT_EQ(planned(app::ExportForm::csv, "inner"), "d.weights.head0.csv") << "a folder that is there";
}

TEST_F(Dialogs, ExportWritesWhereItsDialogSays) {
  ui.look([&](auto& v) { v.selection.pinned = app::CellRef{core::attention::Stage::scores, 1, 0, 0}; });
  show(Dialog::export_files);
  ui.click("dialog/confirm");
  const auto asked = ui.asked<app::ExportAs>();
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(asked[0].what, app::ExportWhat::matrix);
  EXPECT_EQ(asked[0].matrix, *ui.view().selection.pinned);
  const auto files = app::planned_files(ui.model(), asked[0]);
  ASSERT_EQ(files.size(), 1u);
  EXPECT_TRUE(files[0].filename().string().ends_with(".scores.head1.csv")) << files[0];
  EXPECT_TRUE(fs::exists(files[0]));
  show(Dialog::export_files);
  ui.click("dialog/what/2");
  ui.click("dialog/confirm");
  ASSERT_EQ(ui.asked<app::ExportAs>().size(), 2u);
  EXPECT_TRUE(fs::exists(ui.asked<app::ExportAs>()[1].path / "weights.head1.csv"))
      << "in a folder of its own";
}

TEST_F(Dialogs, ExportAsksBeforeItWritesOverAFileAndASecondPressKeepsIt) {
  show(Dialog::export_files);
  ui.click("dialog/confirm");
  ASSERT_EQ(ui.asked<app::ExportAs>().size(), 1u);
  show(Dialog::export_files);
  const ImVec2 place = ui.centre("dialog/confirm");
  ui.click("dialog/confirm");
  ui.run();
  ASSERT_TRUE(ui.has("dialog/replace"));
  const auto keep = ui.rect("dialog/keep");
  EXPECT_TRUE(place.x >= keep.min.x && place.x <= keep.max.x) << "Keep stands where Export stood";
  ui.click("dialog/keep");
  EXPECT_FALSE(ui.has("dialog/replace"));
  ui.click("dialog/confirm");
  ui.click("dialog/replace");
  EXPECT_EQ(ui.asked<app::ExportAs>().size(), 2u);
}

TEST_F(Dialogs, ExportAsksAgainWhenSomethingElseIsToBeWritten) {
  show(Dialog::export_files);
  ui.click("dialog/confirm");
  show(Dialog::export_files);
  ui.click("dialog/confirm");
  ASSERT_TRUE(ui.has("dialog/replace"));
  ui.click("dialog/form/1");
  EXPECT_FALSE(ui.has("dialog/replace"));
  ui.click("dialog/confirm");
  ASSERT_EQ(ui.asked<app::ExportAs>().size(), 2u);
  EXPECT_EQ(ui.asked<app::ExportAs>()[1].form, app::ExportForm::npy);
}

TEST_F(Dialogs, KeysCanBeSearched) {
  show(Dialog::keys);
  ASSERT_TRUE(ui.has("dialog/keys/20"));
  ui.type("undo");
  ui.run();
  EXPECT_TRUE(ui.has("dialog/keys/0"));
  EXPECT_FALSE(ui.has("dialog/keys/3"));
}

TEST_F(Dialogs, ExportOffersWhatEachFormCanHold) {
  show(Dialog::export_files);
  ui.click("dialog/form/2");  // npz: no single matrix
  EXPECT_TRUE(ui.has("dialog/what/1"));
  EXPECT_FALSE(ui.has("dialog/what/2"));
  ui.click("dialog/form/4");  // PNG
  EXPECT_TRUE(ui.has("dialog/scale/3"));
  ui.click("dialog/scale/3");
  EXPECT_EQ(ui.view().settings.export_scale, 4);
  ui.click("dialog/form/7");  // a program is always of the whole model
  EXPECT_FALSE(ui.has("dialog/what/0"));
  ui.click("dialog/confirm");
  EXPECT_EQ(ui.asked<app::ExportAs>().back().form, app::ExportForm::program);
}

TEST_F(Dialogs, AskAboutUnsavedWork) {
  show(Dialog::unsaved_work);
  ui.click("dialog/discard");
  EXPECT_EQ(ui.asked<app::DiscardAndContinue>().size(), 1u);
  show(Dialog::unsaved_work);
  ui.click("dialog/cancel");
  EXPECT_EQ(ui.asked<app::CancelQuestion>().size(), 1u);
  show(Dialog::unsaved_work);
  ui.key(Key::enter);
  EXPECT_EQ(ui.asked<app::SaveAndContinue>().size(), 1u);
  show(Dialog::unsaved_work);
  ui.key(Key::escape);
  EXPECT_EQ(ui.asked<app::CancelQuestion>().size(), 2u);
}

TEST_F(Dialogs, OfferWhatWasLeftAndSayWhatIsWrongWithIt) {
  ui.look([&](auto& v) {
    v.forms.left = {"a.json, 14 edits, from 10:32 to 10:46", "b.json, 1 edit, at 9:00"};
  });
  show(Dialog::recovery);
  EXPECT_FALSE(ui.has("dialog/problem"));
  ui.click("dialog/look1");
  ASSERT_EQ(ui.asked<app::RestoreLeft>().size(), 1u);
  EXPECT_EQ(ui.asked<app::RestoreLeft>()[0].index, 1u);
  ui.click("dialog/drop0");
  ASSERT_EQ(ui.asked<app::DropLeft>().size(), 1u);
  EXPECT_FALSE(ui.asked<app::DropLeft>()[0].is_agreed);
  ui.key(Key::s, {.ctrl = true});
  EXPECT_TRUE(ui.asked<app::SaveFile>().empty());
  ui.key(Key::q, {.ctrl = true});
  EXPECT_EQ(ui.asked<app::Quit>().size(), 1u) << "the next window offers it again";
}

TEST_F(Dialogs, DoWithEnterWhatTheKeyboardStandsOn) {
  show(Dialog::unsaved_work);
  ui.key(Key::right);  // shows where the keyboard stands: at the first button
  ui.key(Key::right);
  ui.key(Key::enter);
  EXPECT_EQ(ui.asked<app::SaveAndContinue>().size(), 0u);
  EXPECT_EQ(ui.asked<app::DiscardAndContinue>().size() + ui.asked<app::CancelQuestion>().size(), 1u);
}

TEST_F(Dialogs, CloseWithEscapeAndLeaveTheWindowUsable) {
  show(Dialog::about);
  ui.key(Key::escape);
  EXPECT_EQ(ui.view().forms.dialog, Dialog::none);
  ui.run(3);
  ui.click("model/causal");
  EXPECT_FALSE(ui.model().mask.causal);
}

TEST_F(Dialogs, KeepTheMouseFromWhatLiesBehind) {
  show(Dialog::about);
  ui.click("model/causal");
  EXPECT_TRUE(ui.model().mask.causal);
}

}  // namespace
