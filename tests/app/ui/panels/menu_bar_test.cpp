#include <gtest/gtest.h>

#include "tests/app/ui/panels/side_panels.hpp"
#include "tests/support/panels.hpp"

namespace {

using core::attention::Stage;
using gui::Panels;

struct MenuBar : testing::Test {
  Panels ui{gui::draw_side_panels};
  void choose(const char* menu, const char* line) {
    ui.click(menu);
    ui.click(line);
  }
  void choose(const char* menu, const char* inner, const char* line) {
    ui.click(menu);
    ui.click(inner);
    ui.click(line);
  }
};

TEST_F(MenuBar, AsksForWhatTheFileMenuNames) {
  choose("menu/File", "menu/file/open");
  EXPECT_EQ(ui.view().forms.dialog, app::Dialog::open);
  ui.key(app::Key::escape);
  choose("menu/File", "menu/file/save");
  EXPECT_EQ(ui.asked<app::SaveFile>().size(), 1u);
  EXPECT_EQ(ui.view().forms.dialog, app::Dialog::save_as) << "a preset has no file yet";
  ui.key(app::Key::escape);
  choose("menu/File", "menu/file/quit");
  EXPECT_EQ(ui.asked<app::Quit>().size(), 1u);
}

TEST_F(MenuBar, CopiesAMatrixInTheFormThatIsChosenAndRemembersIt) {
  ui.look([&](auto& v) { v.selection.pinned = app::CellRef{Stage::mask, 0, 1, 0}; });
  ui.click("menu/Edit");
  ui.click("menu/Edit/Copy as");
  ui.click("menu/Edit/Copy as/Row");
  ui.click("menu/copy/row/latex");
  ASSERT_EQ(ui.asked<app::CopyText>().size(), 1u);
  EXPECT_EQ(ui.asked<app::CopyText>()[0].text,
            "\\begin{bmatrix}\n  1.000 & 1.000 & 0.000 & 0.000 & 0.000 & 0.000\n\\end{bmatrix}\n");
  EXPECT_EQ(ui.view().settings.copy, (app::CopyChoice{core::formats::CopyExtent::row, 3}));
}

TEST_F(MenuBar, CopiesTheModelAsAProgram) {
  ui.click("menu/Edit");
  ui.click("menu/Edit/Copy as");
  ui.click("menu/copy/program");
  ASSERT_EQ(ui.asked<app::CopyText>().size(), 1u);
  EXPECT_NE(ui.asked<app::CopyText>()[0].text.find("import torch"), std::string::npos);
}

TEST_F(MenuBar, OpensARecentFile) {
  ui.store.recall({.recent = {"/somewhere/first.json", "/elsewhere/second.json"}, .progress = {}});
  choose("menu/File", "menu/File/Open recent", "menu/recent/1");
  ASSERT_EQ(ui.asked<app::OpenFile>().size(), 1u);
  EXPECT_EQ(ui.asked<app::OpenFile>()[0].path, "/elsewhere/second.json");
}

TEST_F(MenuBar, UndoesOnlyWhatCanBeUndone) {
  choose("menu/Edit", "menu/edit/undo");
  EXPECT_TRUE(ui.asked<app::Undo>().empty());
  ui.key(app::Key::escape);
  ui.key(app::Key::c);
  ui.play(support::click({900, 500}));
  choose("menu/Edit", "menu/edit/undo");
  EXPECT_EQ(ui.asked<app::Undo>().size(), 1u);
}

TEST_F(MenuBar, ChangesHowThingsLook) {
  choose("menu/View", "menu/theme/light");
  EXPECT_FALSE(ui.view().settings.dark);
  choose("menu/View", "menu/View/Colours", "menu/colours/all");
  EXPECT_EQ(ui.view().look.colors.range, app::RangeRule::all_heads);
  choose("menu/View", "menu/tab/heads");
  EXPECT_EQ(ui.view().look.tab, app::Tab::heads);
  choose("menu/View", "menu/View/Scale", "menu/scale/150");
  EXPECT_FLOAT_EQ(ui.view().settings.scale, 1.5f);
}

TEST_F(MenuBar, FoldsAndUnfoldsStages) {
  choose("menu/View", "menu/View/Shown stages", "menu/shown/scores");
  EXPECT_TRUE(ui.view().look.folded.contains(Stage::scores));
  choose("menu/View", "menu/View/Shown stages", "menu/shown/scores");
  EXPECT_FALSE(ui.view().look.folded.contains(Stage::scores));
}

TEST_F(MenuBar, ShowsTheTitle) {
  EXPECT_TRUE(ui.has("menu/title"));
}

}  // namespace
