#include "app/ui/actions/keys.hpp"

#include <gtest/gtest.h>

#include <string>

#include "app/ui/actions/actions.hpp"
#include "core/graph/attend.hpp"
#include "tests/app/ui/panels/side_panels.hpp"
#include "tests/support/panels.hpp"

namespace {

using app::Key;
using gui::Panels;

struct Shortcuts : testing::Test {
  Panels ui{gui::draw_side_panels};
};

TEST_F(Shortcuts, ChangeTheModelAndTheView) {
  ui.key(Key::c);
  EXPECT_FALSE(ui.model().mask.causal);
  ui.key(Key::d);
  EXPECT_FALSE(ui.model().dropout.training);
  ui.key(Key::t);
  EXPECT_FALSE(ui.view().settings.dark);
}

TEST_F(Shortcuts, CopyTheMatrixThatIsLookedAt) {
  ui.look([&](auto& v) { v.selection.pinned = app::CellRef{core::attention::Stage::mask, 0, 1, 1}; });
  ui.key(Key::c, {.ctrl = true, .shift = true});
  ASSERT_EQ(ui.asked<app::CopyText>().size(), 1u);
  EXPECT_TRUE(ui.asked<app::CopyText>()[0].text.starts_with("1\t0\t0\t0\t0\t0\n1\t1\t0"));
  ui.look([&](auto& v) { v.settings.copy = {core::formats::CopyExtent::row, 4}; });
  ui.key(Key::c, {.ctrl = true, .shift = true});
  EXPECT_EQ(ui.asked<app::CopyText>()[1].text, "np.array([1., 1., 0., 0., 0., 0.])");
}

TEST_F(Shortcuts, ChooseHeadsThatExist) {
  ui.key(Key::digit_2);
  EXPECT_EQ(ui.view().look.head, 1u);
  ui.key(Key::digit_3);
  EXPECT_EQ(ui.view().look.head, 1u) << "there are two heads";
  ui.key(Key::bracket_right);
  EXPECT_EQ(ui.view().look.head, 1u);
  ui.key(Key::bracket_left);
  EXPECT_EQ(ui.view().look.head, 0u);
  ui.key(Key::bracket_left);
  EXPECT_EQ(ui.view().look.head, 0u);
}

TEST_F(Shortcuts, AskForFilesAndSteps) {
  ui.key(Key::s, {.ctrl = true});
  EXPECT_EQ(ui.asked<app::SaveFile>().size(), 1u);
  EXPECT_EQ(ui.view().forms.dialog, app::Dialog::save_as) << "a preset has no file yet";
  ui.key(Key::escape);
  ui.key(Key::z, {.ctrl = true});
  EXPECT_TRUE(ui.asked<app::Undo>().empty()) << "there is nothing to undo";
  ui.key(Key::c);
  ui.key(Key::z, {.ctrl = true});
  EXPECT_EQ(ui.asked<app::Undo>().size(), 1u);
  EXPECT_TRUE(ui.model().mask.causal);
  ui.key(Key::z, {.ctrl = true, .shift = true});
  EXPECT_EQ(ui.asked<app::Redo>().size(), 1u);
  ui.key(Key::z, {.ctrl = true});
  ui.key(Key::y, {.ctrl = true});
  EXPECT_EQ(ui.asked<app::Redo>().size(), 2u);
  EXPECT_FALSE(ui.model().mask.causal);
  ui.key(Key::q, {.ctrl = true});
  EXPECT_EQ(ui.asked<app::Quit>().size(), 1u);
}

TEST_F(Shortcuts, AreSilentWhileTextIsTyped) {
  ui.click("model/tokens");
  ui.key(Key::c);
  ui.key(Key::t);
  EXPECT_TRUE(ui.model().mask.causal);
  EXPECT_TRUE(ui.view().settings.dark);
}

TEST_F(Shortcuts, LeaveDigitsToTheMatrixEditor) {
  ui.click("edit/cell/0/0");
  ui.key(Key::digit_2);
  EXPECT_EQ(ui.view().look.head, 0u);
}

TEST_F(Shortcuts, CopyTheCellUnderTheEditCursorElseThePinnedOne) {
  ui.look([&](auto& v) { v.selection.pinned = app::CellRef{core::attention::Stage::embeddings, 0, 0, 0}; });
  ui.key(Key::c, {.ctrl = true});
  ui.show(core::editing::apply(ui.model(), core::editing::SetCell{{}, 2, 1, 0.1}));
  ui.click("edit/cell/2/1");
  ui.key(Key::c, {.ctrl = true});
  const auto copied = ui.asked<app::CopyText>();
  ASSERT_EQ(copied.size(), 2u);
  EXPECT_EQ(copied[0].text, "0.4300000071525574");
  EXPECT_EQ(copied[1].text, "0.1");
}

TEST_F(Shortcuts, EscapeReleasesTheCursorFirstThenThePinnedCell) {
  ui.click("edit/cell/2/1");
  ui.look([&](auto& v) { v.selection.pinned = app::CellRef{}; });
  ui.key(Key::escape);
  EXPECT_FALSE(ui.view().selection.cursor.has_value());
  EXPECT_TRUE(ui.view().selection.pinned.has_value());
  ui.key(Key::escape);
  EXPECT_FALSE(ui.view().selection.pinned.has_value());
}

TEST_F(Shortcuts, BringTheKeyboardIntoTheMatrix) {
  ui.key(Key::e);
  ui.run();
  ui.key(Key::right);
  ui.key(Key::delete_);
  EXPECT_EQ(ui.view().selection.cursor, (app::EditCursor{0, 1}));
  EXPECT_EQ((*ui.model().sequences[0].embeddings)(0, 1), 0);
}

TEST_F(Shortcuts, OpenAndCloseTheSheetThatListsThemAll) {
  ui.key(Key::slash, {.shift = true});
  EXPECT_EQ(ui.view().forms.dialog, app::Dialog::keys);
  ui.run();
  const auto trace = core::attention::attend(ui.model(), 0);
  const auto listed =
      app::key_sheet(app::actions({{ui.model(), trace, 1, ui.view().look, ui.view().selection},
                                   {ui.model(), ui.view().look, ui.view().selection},
                                   ui.view().settings,
                                   ui.view().forms,
                                   ui.store.document()}))
          .size();
  EXPECT_GT(listed, 40u);
  EXPECT_TRUE(ui.has("dialog/keys/0"));
  EXPECT_TRUE(ui.has("dialog/keys/" + std::to_string(listed - 1)));
  ui.key(Key::c);
  EXPECT_TRUE(ui.model().mask.causal) << "keys rest behind a dialog";
  ui.key(Key::escape);
  EXPECT_EQ(ui.view().forms.dialog, app::Dialog::none);
}

}  // namespace
