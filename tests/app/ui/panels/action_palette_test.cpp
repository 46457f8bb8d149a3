#include <gtest/gtest.h>

#include "tests/support/program.hpp"

namespace {

using app::Dialog;
using app::Key;

struct ActionPalette : testing::Test {
  gui::Program program;
  ActionPalette() { open(); }
  void open() { program.play(support::press({Key::p, true, true})); }
  const app::View& view() const { return program.store.view(); }
  void press(Key key) { program.play(support::press({key})); }
};

TEST_F(ActionPalette, OpensNearTheTopWithTheKeyboardInItsField) {
  EXPECT_EQ(view().forms.dialog, Dialog::palette);
  EXPECT_NEAR(program.centre("palette/field").x, 800, 1);
  EXPECT_LT(program.centre("palette/field").y, 120);
  program.type("caus");
  EXPECT_EQ(view().forms.search.text, "caus");
}

TEST_F(ActionPalette, DoesTheChosenLineOnEnter) {
  program.type("zoom");
  press(Key::enter);
  EXPECT_EQ(view().forms.dialog, Dialog::none);
  EXPECT_EQ(view().look.zoomed.size(), 1u);
}

TEST_F(ActionPalette, GoesThroughItsLinesByKeys) {
  press(Key::down);
  press(Key::down);
  press(Key::up);
  EXPECT_EQ(view().forms.search.line, 1u);
  press(Key::up);
  press(Key::up);
  EXPECT_EQ(view().forms.search.line, 0u);
  press(Key::page_down);
  EXPECT_EQ(view().forms.search.line, 13u);
  EXPECT_TRUE(program.has("palette/line/13"));
  press(Key::page_down);
  EXPECT_EQ(view().forms.search.line, 26u);
  EXPECT_TRUE(program.has("palette/line/26")) << "the list follows";
  EXPECT_FALSE(program.has("palette/line/1"));
  program.type("f");
  EXPECT_EQ(view().forms.search.line, 0u) << "another text, another list";
  EXPECT_EQ(view().forms.search.text, "f");
}

TEST_F(ActionPalette, StaysWhereWhatIsChosenCannotBeDone) {
  program.type("redo");
  press(Key::enter);
  EXPECT_EQ(view().forms.dialog, Dialog::palette);
  program.type("x");
  EXPECT_EQ(view().forms.search.text, "redox") << "the field has the keyboard again, its caret at the end";
}

TEST_F(ActionPalette, ClosesOnEscapeAndRemembersNothing) {
  program.type("light");
  press(Key::escape);
  EXPECT_EQ(view().forms.dialog, Dialog::none);
  EXPECT_TRUE(view().settings.dark);
  EXPECT_FALSE(program.has("palette/field"));
  open();
  EXPECT_EQ(view().forms.search.text, "");
}

TEST_F(ActionPalette, ClosesOnAClickElsewhereAndDoesNothingThere) {
  program.click("model/causal");
  EXPECT_EQ(view().forms.dialog, Dialog::none);
  EXPECT_TRUE(program.store.model().mask.causal);
}

TEST_F(ActionPalette, OpensWhatAsksForMore) {
  program.type("about");
  press(Key::enter);
  program.run(4);
  EXPECT_EQ(view().forms.dialog, Dialog::about);
  EXPECT_TRUE(program.has("dialog/close"));
  EXPECT_FALSE(program.has("palette/field"));
}

TEST_F(ActionPalette, ReachesPresetsLessonsStagesAndSettings) {
  using Sought = std::pair<const char*, const char*>;
  for (const auto& [text, id] :
       {Sought{"scale 150", "palette/scale/150"}, Sought{"large weights", "palette/large/weights"},
        Sought{"glossary", "palette/help/glossary"}, Sought{"eleven", "palette/lessons/000"},
        Sought{"new causal", "palette/new/000-causal"}}) {
    press(Key::escape);
    open();
    program.type(text);
    EXPECT_TRUE(program.has(id)) << text;
  }
}

TEST_F(ActionPalette, PutsWhatIsPossibleBeforeWhatIsNotOfTheSameName) {
  program.type("positions that turn");  // a view of models with rotary positions, and a lesson
  press(Key::enter);
  program.run(4);
  ASSERT_NE(program.store.lesson(), nullptr);
  EXPECT_EQ(program.store.lesson()->lesson->name, "positions");
}

TEST_F(ActionPalette, SaysThatNothingWasFound) {
  program.type("qqq");
  EXPECT_FALSE(program.has("palette/line/0"));
  press(Key::enter);
  EXPECT_EQ(view().forms.dialog, Dialog::palette);
}

TEST_F(ActionPalette, ClosedLeavesKeysToTheWindow) {
  press(Key::escape);
  program.play(support::press({Key::t}));
  EXPECT_FALSE(view().settings.dark);
}

}  // namespace
