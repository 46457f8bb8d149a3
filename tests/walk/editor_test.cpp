// The editor's keyboard, clipboard and token names.
#include <gmock/gmock.h>

#include "tests/walk/walk.hpp"

namespace walk {
namespace {

struct EditorInTheWindow : Program {
  EditorInTheWindow() { ui.sharp = false; }
  double x(std::size_t row, std::size_t column) const {
    return (*ui.model().sequences[0].embeddings)(row, column);
  }
};

TEST_F(EditorInTheWindow, IsWalkedAndTypedIntoWithoutTheMouse) {
  ui.key(Key::e);
  ui.type("1.5");
  ui.key(Key::tab);
  ui.type("-2");
  ui.key(Key::tab);
  ui.type("3");
  ui.key(Key::tab);
  ui.type("4,25");
  ui.key(Key::enter);
  EXPECT_EQ(x(0, 0), 1.5);
  EXPECT_EQ(x(0, 1), -2);
  EXPECT_EQ(x(0, 2), 3);
  EXPECT_EQ(x(1, 0), 4.25) << "behind the last column comes the next row";
  ui.key(Key::right);
  ui.key(Key::down);
  ui.key(Key::delete_);
  EXPECT_EQ(x(3, 1), 0) << "Enter went down one row";
}

/// One letter a frame, which is faster than the field takes the keyboard.
TEST_F(EditorInTheWindow, LosesNoLetterOfAFastTypist) {
  const auto type_fast = [this](const std::string& text) {
    for (const char letter : text) {
      support::InputFrame input;
      input.text = letter;
      input.key = app::KeyPress{letter == 'e' ? Key::e : Key::unknown};
      ui.play({input});
    }
  };
  ui.click("edit/cell/0/0");
  type_fast("-12.375e1");
  ui.key(Key::enter);
  EXPECT_EQ(x(0, 0), -123.75);
  ui.double_click("edit/token/1");
  type_fast("Reise");
  ui.key(Key::enter);
  EXPECT_EQ(ui.model().sequences[0].tokens[1], "Reise");
}

TEST_F(EditorInTheWindow, TypesADigitThatElsewhereChoosesAHead) {
  ui.click("edit/cell/0/0");
  ui.type("2");
  ui.key(Key::enter);
  EXPECT_EQ(x(0, 0), 2);
  EXPECT_EQ(ui.store.view().look.head, 0u);
}

TEST_F(EditorInTheWindow, LeavesTheNumberWhenTypingIsEscaped) {
  const double before = x(1, 1);
  ui.double_click("edit/cell/1/1");
  ui.type("99");
  ui.key(Key::escape);
  EXPECT_EQ(x(1, 1), before);
  ui.double_click("edit/cell/1/1");
  ui.type("ninety");
  ui.key(Key::enter);
  EXPECT_EQ(x(1, 1), before);
  EXPECT_THAT(ui.store.message().text, testing::HasSubstr("expected a number, found \"ninety\""));
}

TEST_F(EditorInTheWindow, PastesABlockInOneUndoStep) {
  const auto before = ui.model();
  ImGui::SetClipboardText("1\t2\n3\t4\n");
  ui.click("edit/cell/2/1");
  ui.key(Key::v, {.ctrl = true});
  EXPECT_EQ(x(2, 1), 1);
  EXPECT_EQ(x(2, 2), 2);
  EXPECT_EQ(x(3, 1), 3);
  EXPECT_EQ(x(3, 2), 4);
  ui.key(Key::z, {.ctrl = true});
  EXPECT_TRUE(same_bits(ui.model(), before));
}

TEST_F(EditorInTheWindow, RefusesAPasteThatDoesNotFit) {
  const auto before = ui.model();
  ImGui::SetClipboardText("1 2 3 4");
  ui.click("edit/cell/0/0");
  ui.key(Key::v, {.ctrl = true});
  EXPECT_TRUE(same_bits(ui.model(), before));
  EXPECT_TRUE(ui.store.message().is_error);
  EXPECT_THAT(ui.store.message().text, testing::HasSubstr("a block of 1×4 does not fit"));
}

TEST_F(EditorInTheWindow, CopiesTheNumberInFull) {
  ui.fill_in("model/d_out", "4");
  ui.double_click("edit/cell/0/0");
  ui.type("0.12345678901234567");
  ui.key(Key::enter);
  ui.click("edit/cell/0/0");
  ui.key(Key::c, {.ctrl = true});
  ui.run();
  EXPECT_EQ(std::stod(ImGui::GetClipboardText()), x(0, 0));
  EXPECT_TRUE(ui.model().mask.causal) << "Ctrl+C is not C";
}

TEST_F(EditorInTheWindow, RenamesATokenEverywhere) {
  ui.double_click("edit/token/1");
  ui.type("Reise");
  ui.key(Key::enter);
  EXPECT_EQ(ui.model().sequences[0].tokens[1], "Reise");
  ui.key(Key::z, {.ctrl = true});
  EXPECT_EQ(ui.model().sequences[0].tokens[1], "journey");
}

TEST_F(EditorInTheWindow, ChangesAProjectionOfOneHead) {
  ui.click("edit/tab/W_v");
  const arma::mat before = *ui.model().projections->value.weight;
  const arma::mat first = ui.store.live().trace().heads[0].contexts,
                  second = ui.store.live().trace().heads[1].contexts;
  ui.drag("edit/cell/0/0", 60, 0);
  EXPECT_NE((*ui.model().projections->value.weight)(0, 0), before(0, 0));
  EXPECT_FALSE(arma::approx_equal(*ui.store.live().trace().heads[0].contexts, first, "absdiff", 0));
  EXPECT_TRUE(arma::approx_equal(*ui.store.live().trace().heads[1].contexts, second, "absdiff", 0));
}

}  // namespace
}  // namespace walk
