#include <gmock/gmock.h>

#include <fstream>

#include "app/files/browser.hpp"
#include "app/files/export_plan.hpp"
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

TEST_F(Dialogs, ExportNamesTheFileOrTheDirectory) {
  ui.look([&](auto& v) { v.selection.pinned = app::CellRef{core::attention::Stage::scores, 1, 0, 0}; });
  show(Dialog::export_files);
  ui.click("dialog/confirm");
  EXPECT_TRUE(fs::exists(directory.path() / "scores.head1.csv"));
  show(Dialog::export_files);
  ui.click("dialog/what/2");
  ui.click("dialog/confirm");
  ASSERT_TRUE(ui.has("dialog/replace")) << "one of the files is there already";
  ui.click("dialog/replace");
  EXPECT_TRUE(fs::exists(directory.path() / "weights.head1.csv"));
  const auto asked = ui.asked<app::ExportAs>();
  ASSERT_EQ(asked.size(), 2u);
  EXPECT_EQ(asked[0].what, app::ExportWhat::matrix);
  EXPECT_EQ(asked[0].matrix, *ui.view().selection.pinned);
  EXPECT_THAT(app::planned_files(ui.model(), asked[0]),
              testing::ElementsAre(directory.path() / "scores.head1.csv"));
  EXPECT_EQ(asked[1].what, app::ExportWhat::everything);
  EXPECT_EQ(asked[1].path, directory.path());
}

TEST_F(Dialogs, ExportAsksBeforeItWritesOverAFile) {
  std::ofstream(directory.path() / "weights.head0.csv") << "mine";
  show(Dialog::export_files);
  ui.click("dialog/confirm");
  EXPECT_TRUE(ui.asked<app::ExportAs>().empty());
  ASSERT_TRUE(ui.has("dialog/replace"));
  ui.click("dialog/keep");
  EXPECT_FALSE(ui.has("dialog/replace"));
  ui.click("dialog/confirm");
  ui.click("dialog/replace");
  EXPECT_EQ(ui.asked<app::ExportAs>().size(), 1u);
}

TEST_F(Dialogs, ExportAsksAgainWhenSomethingElseIsToBeWritten) {
  std::ofstream(directory.path() / "weights.head0.csv") << "mine";
  show(Dialog::export_files);
  ui.click("dialog/confirm");
  ASSERT_TRUE(ui.has("dialog/replace"));
  ui.click("dialog/form/1");
  EXPECT_FALSE(ui.has("dialog/replace"));
  ui.click("dialog/confirm");
  ASSERT_EQ(ui.asked<app::ExportAs>().size(), 1u);
  EXPECT_EQ(ui.asked<app::ExportAs>()[0].form, app::ExportForm::npy);
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
  ui.click("dialog/form/6");  // a program is always of the whole model
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
