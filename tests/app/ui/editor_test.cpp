// EDIT: the matrix editor by mouse and keyboard, its panel, and pasted numbers.
#include "app/ui/widgets/editor/matrix_editor.hpp"

#include <gmock/gmock.h>

#include "core/base/random.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/program.hpp"

namespace {

using namespace core::editing;
using app::Key;
using gui::Panels;
using testing::HasSubstr;

struct MatrixEditor : testing::Test {
  Panels ui{gui::draw_side_panels};
  const arma::mat& x() const { return ui.model().sequences[0].embeddings; }
};

TEST_F(MatrixEditor, DragsAHundredthAPixelWithinOneTarget) {
  const arma::mat before = x();
  ui.drag("edit/cell/1/2", 50, 0);
  const auto edits = ui.edits<SetCell>();
  ASSERT_GE(edits.size(), 5u);
  for (const SetCell& edit : edits) EXPECT_EQ(target(edit), target(edits.front()));
  EXPECT_NEAR(x()(1, 2) - before(1, 2), 0.50, 1e-8);
  EXPECT_EQ(arma::accu(x() != before), 1u);
}

TEST_F(MatrixEditor, DragsCoarselyWithShiftAndFinelyWithAlt) {
  const double before = x()(0, 0);
  ui.drag("edit/cell/0/0", 40, 0, {.shift = true});
  EXPECT_NEAR(x()(0, 0) - before, 4, 1e-8);
  ui.drag("edit/cell/0/0", -40, 0, {.alt = true});
  EXPECT_NEAR(x()(0, 0) - before, 3.96, 1e-8);
  const double upwards = x()(3, 0);
  ui.drag("edit/cell/3/0", 0, -20);
  EXPECT_NEAR(x()(3, 0) - upwards, 0.20, 1e-8);
}

TEST_F(MatrixEditor, AClickChangesNothingAndSoDoesATremblingOne) {
  ui.click("edit/cell/2/1");
  EXPECT_EQ(ui.view().selection.cursor, (app::EditCursor{2, 1}));
  ui.drag("edit/cell/2/1", 2, 0);
  EXPECT_TRUE(ui.asked<app::ApplyEdit>().empty());
}

TEST_F(MatrixEditor, TypesAfterADoubleClick) {
  ui.double_click("edit/cell/2/1");
  ui.type("-1.25");
  ui.key(Key::enter);
  EXPECT_EQ(x()(2, 1), -1.25);
  EXPECT_EQ(ui.view().selection.cursor, (app::EditCursor{3, 1})) << "Enter goes on to the row below";
  ui.type("3");
  ui.key(Key::down);
  EXPECT_EQ(x()(3, 1), 3);
  EXPECT_EQ(ui.view().selection.cursor, (app::EditCursor{4, 1}));
  ui.double_click("edit/token/1");
  ui.type("path");
  ui.key(Key::enter);
  EXPECT_EQ(ui.model().sequences[0].tokens[1], "path");
}

TEST_F(MatrixEditor, ADigitStartsTypingAndKeepsItsPlace) {
  ui.click("edit/cell/0/0");
  ui.type("1");
  ui.type("2");
  ui.type(".5");
  ui.key(Key::tab);
  EXPECT_EQ(x()(0, 0), 12.5);
  EXPECT_EQ(ui.view().selection.cursor, (app::EditCursor{0, 1}));
  ui.type("7");
  ui.key(Key::tab);
  ui.type("8");
  ui.key(Key::tab);
  EXPECT_EQ(x()(0, 1), 7);
  EXPECT_EQ(x()(0, 2), 8);
  EXPECT_EQ(ui.view().selection.cursor, (app::EditCursor{1, 0}))
      << "behind the last column comes the next row";
}

TEST_F(MatrixEditor, EscapeKeepsTheOldNumber) {
  const arma::mat before = x();
  ui.double_click("edit/cell/2/1");
  ui.type("99");
  ui.key(Key::escape);
  EXPECT_TRUE(arma::approx_equal(x(), before, "absdiff", 0));
  EXPECT_FALSE(ui.view().forms.typed.has_value());
}

TEST_F(MatrixEditor, AClickElsewhereHandsInTheNumber) {
  ui.double_click("edit/cell/2/1");
  ui.type("9");
  ui.click("edit/cell/4/2");
  EXPECT_EQ(x()(2, 1), 9);
  EXPECT_EQ(ui.view().selection.cursor, (app::EditCursor{4, 2}));
  ui.double_click("edit/cell/2/1");
  ui.type("8");
  ui.click("model/causal");
  EXPECT_EQ(x()(2, 1), 8);
}

TEST_F(MatrixEditor, RefusesWhatIsNoNumber) {
  const arma::mat before = x();
  for (const char* rubbish : {"nan", "two", "1e999", "--3"}) {
    ui.store.dispatch(app::ShowMessage{});
    ui.double_click("edit/cell/2/1");
    ui.type(rubbish);
    ui.key(Key::enter);
    EXPECT_TRUE(ui.message().is_error) << rubbish;
    EXPECT_THAT(ui.message().text, HasSubstr("row 2, column 1: expected a number, found")) << rubbish;
  }
  EXPECT_TRUE(arma::approx_equal(x(), before, "absdiff", 0));
}

TEST_F(MatrixEditor, ShowsWhatWasRefusedAtItsCell) {
  ui.double_click("edit/cell/2/1");
  ui.type("two");
  ui.key(Key::enter);
  ui.run(3);
  ASSERT_TRUE(ui.view().forms.submitted);
  EXPECT_THAT(ui.view().forms.submitted->error, HasSubstr("expected a number"));
  EXPECT_EQ(ui.view().forms.submitted->text, "two");
  EXPECT_EQ(ui.view().selection.cursor, (app::EditCursor{2, 1})) << "it stays there";
  ui.click("edit/cell/0/0");
  ui.run(3);
  EXPECT_FALSE(ui.view().forms.submitted);
}

TEST_F(MatrixEditor, WalksWithKeysAndStopsAtTheEdges) {
  ui.click("edit/cell/0/0");
  const auto expect_after = [&](Key key, std::size_t row, std::size_t column) {
    ui.key(key);
    EXPECT_EQ(ui.view().selection.cursor, (app::EditCursor{row, column}));
  };
  expect_after(Key::up, 0, 0);
  expect_after(Key::down, 1, 0);
  expect_after(Key::end, 1, 2);
  expect_after(Key::right, 1, 2);
  expect_after(Key::home, 1, 0);
  expect_after(Key::page_down, 5, 0);
  expect_after(Key::page_up, 0, 0);
}

TEST_F(MatrixEditor, DeleteMakesZero) {
  ui.click("edit/cell/5/1");
  ui.key(Key::delete_);
  EXPECT_EQ(x()(5, 1), 0);
  ui.click("edit/cell/4/1");
  ui.key(Key::backspace);
  EXPECT_EQ(x()(4, 1), 0);
}

TEST_F(MatrixEditor, PastesABlock) {
  ImGui::SetClipboardText("1\t2\n3\t-4.5\n");
  ui.click("edit/cell/1/1");
  ui.key(Key::v, {.ctrl = true});
  EXPECT_EQ(x()(1, 1), 1);
  EXPECT_EQ(x()(1, 2), 2);
  EXPECT_EQ(x()(2, 1), 3);
  EXPECT_EQ(x()(2, 2), -4.5);
  EXPECT_EQ(ui.edits<SetBlock>().size(), 1u);
}

TEST_F(MatrixEditor, RefusesABlockThatDoesNotFit) {
  ImGui::SetClipboardText("1 2 3\n4 5 6");
  ui.click("edit/cell/5/1");
  ui.key(Key::v, {.ctrl = true});
  EXPECT_TRUE(ui.edits<SetBlock>().empty());
  EXPECT_THAT(ui.message().text, HasSubstr("2×3"));
  EXPECT_THAT(ui.message().text, HasSubstr("1×2"));
}

TEST_F(MatrixEditor, AddsMovesAndRemovesTokensFromTheirMenu) {
  const auto choose = [&](const char* line) {
    ui.right_click("edit/token/1");
    ui.click(std::string("edit/token_menu/") + line);
  };
  choose("insert_before");
  EXPECT_EQ(ui.model().n_tokens(), 7u);
  EXPECT_EQ(ui.model().sequences[0].tokens[2], "journey");
  choose("remove");
  EXPECT_EQ(ui.model().sequences[0].tokens[1], "journey");
  choose("up");
  EXPECT_EQ(ui.model().sequences[0].tokens[0], "journey");
  choose("down");
  EXPECT_EQ(ui.model().sequences[0].tokens[2], "Your") << "Your had come second and goes on to the third row";
  choose("insert_after");
  EXPECT_EQ(ui.model().n_tokens(), 7u);
  EXPECT_DOUBLE_EQ(arma::accu(arma::abs(x().row(2))), 0);
}

TEST_F(MatrixEditor, DragsATokenToAnotherPlace) {
  const arma::rowvec numbers = x().row(0);
  ui.drag("edit/token/0", 0, 3 * 26);
  EXPECT_EQ(ui.model().sequences[0].tokens[3], "Your");
  EXPECT_TRUE(arma::approx_equal(x().row(3), numbers, "absdiff", 0));
}

TEST_F(MatrixEditor, DrawsOnlyTheVisibleCellsOfALargeMatrix) {
  const app::Loop::DrawFunction draw = [](const app::Frame& frame) {
    ImGui::SetNextWindowPos({0, 0});
    ImGui::SetNextWindowSize({800, 600});
    ImGui::Begin("window", nullptr, ImGuiWindowFlags_NoDecoration);
    app::widgets::matrix_editor(frame, {{}, *frame.pending.model.sequences[0].embeddings, nullptr, {}},
                                {700, 500});
    ImGui::End();
  };
  ImGui::DestroyContext();  // one context at a time
  {
    Panels large(draw);
    core::attention::Model model;
    model.sequences = {{core::attention::numbered_tokens(600), arma::mat(600, 400, arma::fill::ones)}};
    large.show(model);
    large.run();
    EXPECT_GT(large.vertices(), 1000);
    EXPECT_LT(large.vertices(), 40000);
    EXPECT_TRUE(large.has("edit/cell/0/0"));
    EXPECT_FALSE(large.has("edit/cell/100/0"));
    large.click("edit/cell/0/0");
    large.key(Key::end, {.ctrl = true});
    large.run();
    EXPECT_EQ(large.view().selection.cursor, (app::EditCursor{599, 399}));
    EXPECT_TRUE(large.has("edit/cell/599/399")) << "the cursor stays in sight";
    EXPECT_FALSE(large.has("edit/cell/0/0"));
  }
  ImGui::CreateContext();  // for the fixture to destroy
}

struct EditPanel : MatrixEditor {
  void fill(const char* how) {
    ui.click("edit/fill");
    ui.click(std::string("edit/fill/") + how);
  }
};

TEST_F(EditPanel, HasATabForEachMatrixOfTheModel) {
  for (const char* name : {"X", "W_q", "W_k", "W_v", "W_o", "b_o"})
    EXPECT_TRUE(ui.has(std::string("edit/tab/") + name)) << name;
  for (const char* name : {"b_q", "b_k", "b_v"})
    EXPECT_FALSE(ui.has(std::string("edit/tab/") + name)) << name;
  ui.change([](auto& m) { m.projections.reset(), m.n_heads = 1; });
  EXPECT_FALSE(ui.has("edit/tab/W_q"));
}

TEST_F(EditPanel, EditsTheChosenMatrix) {
  ui.click("edit/tab/W_k");
  EXPECT_EQ(ui.view().look.edited.name, MatrixName::key_weight);
  const double before = (*ui.model().projections->key.weight)(2, 3);
  ui.drag("edit/cell/2/3", 10, 0);
  EXPECT_NEAR((*ui.model().projections->key.weight)(2, 3) - before, 0.1, 1e-8);
}

TEST_F(EditPanel, ShowsXWhenTheChosenMatrixIsGone) {
  ui.click("edit/tab/b_o");
  ui.change([](auto& m) { m.projections.reset(), m.n_heads = 1; });
  EXPECT_TRUE(ui.has("edit/cell/5/2"));
  EXPECT_TRUE(ui.has("edit/add_token"));
}

TEST_F(EditPanel, OpensAtTheColumnsOfTheDisplayedHead) {
  ui.change([](auto& m) { m = apply(apply(m, SetOutputWidth{64}), SetHeadCount{4}); });
  ui.click("edit/tab/W_q");
  ui.run();
  EXPECT_TRUE(ui.has("edit/cell/0/0"));
  EXPECT_FALSE(ui.has("edit/cell/0/48"));
  ui.look([](auto& v) { v.look.head = 3; });
  ui.run();
  EXPECT_TRUE(ui.has("edit/cell/0/48"));
  EXPECT_FALSE(ui.has("edit/cell/0/0"));
  ui.click("edit/tab/W_o");
  ui.run(4);
  EXPECT_TRUE(ui.has("edit/cell/48/0"));
}

TEST_F(EditPanel, FillsWithWhatTheMenuSays) {
  fill("ones");
  EXPECT_EQ(arma::accu(x()), 18);
  fill("identity");
  EXPECT_EQ(arma::accu(x()), 3);
  EXPECT_EQ(arma::trace(x().rows(0, 2)), 3);
  fill("zeros");
  EXPECT_EQ(arma::accu(arma::abs(x())), 0);
}

TEST_F(EditPanel, DrawsRandomNumbersRowByRowAsPyTorchDoes) {
  ui.look([&](auto& v) { v.forms.fill.fill.seed = 7; });
  fill("rand");
  const auto rand = core::random::Generator(7).rand(18);
  for (std::size_t i = 0; i < 18; ++i) EXPECT_EQ(x()(i / 3, i % 3), static_cast<double>(rand[i]));
  ui.click("edit/random");
  const auto normal = core::random::Generator(7).normal(18);
  for (std::size_t i = 0; i < 18; ++i) EXPECT_EQ(x()(i / 3, i % 3), static_cast<double>(normal[i]));
  EXPECT_EQ(ui.view().forms.fill.fill.seed, 8u) << "each press takes the next seed";
}

TEST_F(EditPanel, FillsAProjectionWithTheTransposedWeightOfLinear) {
  ui.click("edit/tab/W_q");
  fill("linear");
  const auto weight = core::random::Generator(123).linear_weight(3, 4);  // 4 × 3, row by row
  const arma::mat& w = ui.model().projections->query.weight;
  for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(w(i % 3, i / 3), static_cast<double>(weight[i]));
}

using app::widgets::parse_pasted_matrix;
using support::error_of;

void expect_block(std::string_view text) {
  const arma::mat expected{{1, -2.5}, {3e2, 4}};
  EXPECT_TRUE(arma::approx_equal(parse_pasted_matrix(text), expected, "absdiff", 0)) << text;
}

TEST(PastedNumbers, UnderstandsTabsCommasSemicolonsAndBlanks) {
  expect_block("1\t-2.5\n3e2\t4\n");
  expect_block("1,-2.5\r\n300,4\r\n");
  expect_block("1;-2,5\n300;4");
  expect_block("  1   -2.5\n300 4  \n\n");
  expect_block("1, −2.5\n+300, 4");
}

TEST(PastedNumbers, UnderstandsWhatPyTorchAndNumPyPrint) {
  expect_block("tensor([[  1.0000,  -2.5000],\n        [300.0000,   4.0000]], grad_fn=<MulBackward0>)");
  expect_block("array([[1., -2.5],\n       [3e+02, 4.]])");
  expect_block("[[  1.   -2.5]\n [300.    4. ]]");
  expect_block("[[1, -2.5], [300, 4]]");
}

TEST(PastedNumbers, LeavesOutTheNamesOfASpreadsheet) {
  expect_block("\tThe\tdog\nThe\t1\t-2.5\ndog\t300\t4\n");
}

TEST(PastedNumbers, NamesWhatIsNoMatrixOfNumbers) {
  for (const auto& [text, named] : {std::pair{"1\t2\n3\tx", "line 2, column 2: expected a number, got \"x\""},
                                    {"1,nan", "row 1, column 2: expected a finite number, got nan"},
                                    {"1,,3", "line 1, column 2: expected a number, got \"\""},
                                    {"[[[1]]]", "expected a matrix, got a tensor of shape [1, 1, 1]"},
                                    {"1 2\n3", "line 2: expected 2 fields as in line 1, got 1"},
                                    {" \n", "expected numbers, got nothing"},
                                    {"[]", "expected numbers, got nothing"}})
    EXPECT_EQ(error_of([&] { parse_pasted_matrix(text); }), std::string("pasted text: ") + named);
}

}  // namespace
