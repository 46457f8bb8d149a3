#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/editing/edit.hpp"
#include "core/graph/attend.hpp"
#include "core/graph/given_model.hpp"
#include "tests/core/editing/refusal.hpp"
#include "tests/support/random_model.hpp"

namespace core::editing {
namespace {

using attention::GivenStage;
using attention::Model;
using attention::SharedMatrix;
using enum attention::Stage;

/// Three tokens in two heads of two columns.
Model three_tokens(std::size_t n_sequences = 1) {
  support::Random random(41);
  return support::model(random, 3, 3, 4, 2, n_sequences);
}

/// [row][column] = 10 · row + column, the same in every head.
GivenStage counted(attention::Stage stage, std::size_t rows, std::size_t columns,
                   std::size_t n_matrices = 2) {
  arma::mat m(rows, columns);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j) m(i, j) = static_cast<double>(10 * i + j);
  return {stage, std::vector<SharedMatrix>(n_matrices, m)};
}

const arma::mat& given_of(const Model& model, attention::Stage stage) {
  return *model.given.find(stage)->matrices.front();
}

bool equal(const arma::mat& a, const arma::mat& b) {
  return arma::approx_equal(a, b, "absdiff", 0);
}

TEST(GiveStage, IsTakenBackByComputingIt) {
  const Model before = three_tokens();
  const Model given = editing::apply(before, GiveStage{counted(weights, 3, 3)});
  EXPECT_EQ(attention::attend(given).heads[1].weights(2, 1), 21);
  EXPECT_EQ(editing::apply(given, ComputeStage{weights}), before);
  EXPECT_EQ(editing::apply(before, ComputeStage{weights}), before);
}

TEST(GiveStage, RefusesWhatDoesNotFit) {
  EXPECT_EQ(refusal(three_tokens(), GiveStage{counted(weights, 4, 4)}),
            "given.weights[0]: expected 3×4 (n_tokens × n_keys), got 4×4");
  EXPECT_EQ(
      refusal(three_tokens(), GiveStage{counted(embeddings, 3, 3)}),
      "given.embeddings: expected one of queries, keys, values, scores, scaled_scores, masked_scores, weights, dropout_mask");
}

TEST(GiveStage, NumbersKeysThatAreOtherTokens) {
  const Model before = editing::apply(three_tokens(), SwitchMaskCell{0, 2, true});
  const Model wide = editing::apply(before, GiveStage{counted(weights, 3, 5)});
  EXPECT_EQ(wide.sequences[0].keys(), attention::numbered_tokens(5));
  const Model narrow = editing::apply(wide, GiveStage{counted(weights, 3, 2)});
  EXPECT_TRUE(narrow.mask.cells.empty());
  EXPECT_TRUE(editing::apply(wide, ComputeStage{weights}).sequences[0].key_tokens.empty());
}

TEST(GiveStage, ForgetsCellsThatItHides) {
  Model model = editing::apply(three_tokens(), TypeOver{{scores, 0, 0, 1, 1}, 3});
  model = editing::apply(model, TypeOver{{contexts, 0, 0, 1, 1}, 4});
  model = editing::apply(model, GiveStage{counted(weights, 3, 3)});
  ASSERT_EQ(model.given.cells.size(), 1u);
  EXPECT_EQ(model.given.cells[0].place.stage, contexts);
}

TEST(TypeOver, SetsAndTakesBackOneCell) {
  const Model before = three_tokens();
  const Model typed = editing::apply(before, TypeOver{{scores, 0, 1, 2, 0}, 0.5});
  EXPECT_EQ(attention::attend(typed).heads[1].scores(2, 0), 0.5);
  const Model again = editing::apply(typed, TypeOver{{scores, 0, 1, 2, 0}, 0.75});
  EXPECT_EQ(again.given.cells.size(), 1u);
  EXPECT_EQ(editing::apply(again, TypeOver{{scores, 0, 1, 2, 0}, std::nullopt}), before);
  EXPECT_EQ(editing::apply(again, ClearTypedCells{}), before);
}

TEST(TypeOver, RefusesCellsThatAreNotThere) {
  const Model m = three_tokens();
  EXPECT_EQ(refusal(m, TypeOver{{scores, 0, 2, 0, 0}, 1}), "scores[2]: there are only 2 heads");
  EXPECT_EQ(refusal(m, TypeOver{{scores, 0, 0, 3, 0}, 1}), "scores[3]: there are only 3 rows");
  EXPECT_EQ(refusal(m, TypeOver{{queries, 0, 0, 0, 2}, 1}), "queries[2]: there are only 2 columns");
  EXPECT_EQ(refusal(m, TypeOver{{row_sums, 0, 0, 0, 0}, 1}), "row_sums: no cell of it can be typed over");
  EXPECT_EQ(refusal(m, TypeOver{{mask, 0, 0, 0, 0}, 1}), "mask: no cell of it can be typed over");
}

TEST(TypeOver, IsForgottenWithItsStage) {
  Model model = editing::apply(three_tokens(), SetMaskMethod{attention::MaskMethod::renormalise});
  model = editing::apply(model, TypeOver{{row_sums, 0, 0, 1, 0}, 2});
  EXPECT_TRUE(
      editing::apply(model, SetMaskMethod{attention::MaskMethod::negative_infinity}).given.cells.empty());
}

TEST(SwitchHead, GoesOffAndOn) {
  const Model before = three_tokens();
  const Model off = editing::apply(before, SwitchHead{1, false});
  EXPECT_EQ(off.heads_off, std::vector<std::size_t>{1});
  EXPECT_EQ(editing::apply(off, SwitchHead{1, false}), off);
  EXPECT_EQ(editing::apply(off, SwitchHead{1, true}), before);
  EXPECT_EQ(refusal(before, SwitchHead{2, false}), "heads_off[2]: there are only 2 heads");
  EXPECT_TRUE(editing::apply(off, SetHeadCount{1}).heads_off.empty());
}

TEST(SetInputWidth, GivesEmbeddingsToAModelThatHasNone) {
  const Model model = attention::model_of({counted(weights, 3, 3, 1)});
  EXPECT_TRUE(equal(*editing::apply(model, SetInputWidth{2}).sequences[0].embeddings, arma::zeros(3, 2)));
}

TEST(SetHeadCount, IsRefusedWhereNoWidthIsKnown) {
  const Model model = attention::model_of({counted(weights, 3, 3)});
  EXPECT_EQ(refusal(model, SetHeadCount{0}), "n_heads: expected at least one head");
}

TEST(TokensOfGivenStages, TakeTheirNumbersAlong) {
  Model model = editing::apply(three_tokens(), GiveStage{counted(scores, 3, 3)});
  model = editing::apply(model, TypeOver{{weights, 0, 1, 2, 1}, 0.25});
  const Model moved = editing::apply(model, MoveToken{0, 2, 0});
  EXPECT_TRUE(equal(given_of(moved, scores), arma::mat{{22, 20, 21}, {2, 0, 1}, {12, 10, 11}}));
  EXPECT_EQ(moved.given.cells[0].place, (attention::GivenPlace{weights, 0, 1, 0, 2}));
  const Model inserted = editing::apply(model, InsertToken{1, "new"});
  EXPECT_TRUE(equal(given_of(inserted, scores),
                    arma::mat{{0, 0, 1, 2}, {0, 0, 0, 0}, {10, 0, 11, 12}, {20, 0, 21, 22}}));
  EXPECT_EQ(editing::apply(inserted, RemoveToken{1}), model);
  EXPECT_TRUE(editing::apply(model, RemoveToken{2}).given.cells.empty());
}

TEST(TokensOfGivenStages, LeaveOtherKeysAlone) {
  const Model model = editing::apply(three_tokens(), GiveStage{counted(weights, 3, 5)});
  const Model fewer = editing::apply(model, RemoveToken{0});
  EXPECT_TRUE(equal(given_of(fewer, weights), arma::mat{{10, 11, 12, 13, 14}, {20, 21, 22, 23, 24}}));
}

TEST(SequencesOfGivenStages, TakeTheirNumbersAlong) {
  Model model = editing::apply(three_tokens(2), GiveStage{counted(keys, 3, 2, 4)});
  model = editing::apply(model, TypeOver{{weights, 1, 0, 0, 0}, 0.25});
  const Model more = editing::apply(model, AddSequence{1});
  EXPECT_EQ(more.given.find(keys)->matrices.size(), 6u);
  EXPECT_EQ(more.given.cells[1].place.sequence, 2u);
  EXPECT_EQ(editing::apply(more, RemoveSequence{2}), model);
  EXPECT_EQ(editing::apply(model, RemoveSequence{0}).given.cells[0].place.sequence, 0u);
}

TEST(GivenEdits, AreDescribed) {
  EXPECT_EQ(describe(GiveStage{{weights, {}}}), "Weights given");
  EXPECT_EQ(describe(ComputeStage{weights}), "Weights computed again");
  EXPECT_EQ(describe(TypeOver{{scores, 0, 0, 1, 2}, 5}), "number typed over Scores, row 1, column 2");
  EXPECT_EQ(describe(SwitchHead{1, false}), "switch of head 1");
  EXPECT_EQ(target(TypeOver{{scores, 0, 0, 1, 2}, 5}), target(TypeOver{{scores, 0, 0, 1, 2}, 6}));
  EXPECT_NE(target(TypeOver{{scores, 0, 0, 1, 2}, 5}), target(TypeOver{{scores, 0, 1, 1, 2}, 5}));
}

}  // namespace
}  // namespace core::editing
