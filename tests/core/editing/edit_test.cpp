#include "core/editing/edit.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/base/error.hpp"
#include "core/graph/limits.hpp"
#include "tests/core/editing/random_edit.hpp"
#include "tests/core/editing/refusal.hpp"

namespace core::editing {
namespace {

using attention::MaskCell;
using attention::Model;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr MatrixPlace place_of_x{MatrixName::embeddings, 0}, place_of_w_q{MatrixName::query_weight, 0};

/// Four tokens of three numbers, projected to four columns in two heads.
Model four_tokens(std::size_t n_sequences = 1) {
  Random random(11);
  return support::model(random, 4, 3, 4, 2, n_sequences);
}

Model without_projections() {
  Model m = apply(four_tokens(), SetHeadCount{1});
  return apply(m, SetProjections{false});
}

Model with_given_mask(Model m) {
  Random random(12);
  m.dropout.given.clear();
  for (std::size_t k = 0; k < m.sequences.size() * m.n_heads; ++k)
    m.dropout.given.emplace_back(support::zeros_and_ones(random, m.n_tokens(), m.n_tokens()));
  return m;
}

bool same(const arma::mat& a, const arma::mat& b) {
  return arma::approx_equal(a, b, "absdiff", 0);
}

TEST(SetCell, ChangesOneNumberAndSharesAllOtherMatrices) {
  const Model before = four_tokens(2);
  const Model after = apply(before, SetCell{place_of_w_q, 1, 2, 9});
  arma::mat expected = before.projections->query.weight;
  expected(1, 2) = 9;
  EXPECT_TRUE(same(after.projections->query.weight, expected));
  EXPECT_NE(before.projections->query.weight, after.projections->query.weight);
  EXPECT_TRUE(after.projections->key.weight.shares_with(before.projections->key.weight));
  EXPECT_TRUE(after.projections->key.bias->shares_with(*before.projections->key.bias));
  EXPECT_TRUE(after.projections->output->weight.shares_with(before.projections->output->weight));
  for (std::size_t s : {0, 1})
    EXPECT_TRUE(after.sequences[s].embeddings.shares_with(before.sequences[s].embeddings));
}

TEST(SetCell, ToTheSameNumberSharesEverything) {
  const Model m = four_tokens();
  const Model after = apply(m, SetCell{place_of_x, 1, 2, (*m.sequences[0].embeddings)(1, 2)});
  EXPECT_TRUE(after.sequences[0].embeddings.shares_with(m.sequences[0].embeddings));
}

TEST(SetCell, ReachesEveryMatrixByItsName) {
  Model m = four_tokens(2);
  for (Part part : {Part::query, Part::value}) m = apply(m, SetBias{part, true});
  double value = 100;
  using enum MatrixName;
  constexpr std::array projected_from_and_by{embeddings,   query_weight,  key_weight,
                                             value_weight, output_weight, query_bias,
                                             key_bias,     value_bias,    output_bias};
  for (const MatrixName name : projected_from_and_by) {
    const MatrixPlace place{name, name == MatrixName::embeddings ? 1u : 0u};
    m = apply(m, SetCell{place, 0, 1, ++value});
    ASSERT_NE(find_matrix(m, place), nullptr);
    EXPECT_EQ((**find_matrix(m, place))(0, 1), value);
  }
  const attention::Projections& p = *m.projections;
  EXPECT_EQ((*m.sequences[1].embeddings)(0, 1), 101);
  EXPECT_EQ((*p.query.weight)(0, 1), 102);
  EXPECT_EQ((*p.key.weight)(0, 1), 103);
  EXPECT_EQ((*p.value.weight)(0, 1), 104);
  EXPECT_EQ((*p.output->weight)(0, 1), 105);
  EXPECT_EQ((**p.query.bias)(0, 1), 106);
  EXPECT_EQ((**p.key.bias)(0, 1), 107);
  EXPECT_EQ((**p.value.bias)(0, 1), 108);
  EXPECT_EQ((**p.output->bias)(0, 1), 109);
}

TEST(SetCell, RefusesWhatIsNotThereOrNotANumber) {
  const Model m = four_tokens();
  EXPECT_EQ(refusal(m, SetCell{place_of_x, 1, 2, NAN}), "embeddings[1][2]: expected a finite number");
  EXPECT_EQ(refusal(m, SetCell{place_of_w_q, 1, 2, INFINITY}),
            "projections.query.weight[1][2]: expected a finite number");
  EXPECT_EQ(refusal(m, SetCell{place_of_x, 4, 0, 1}),
            "embeddings[4][0]: 1×1 numbers do not fit there, the matrix is 4×3");
  EXPECT_NE(refusal(m, SetCell{place_of_x, 0, 3, 1}), "no error");
  EXPECT_EQ(refusal(m, SetCell{{MatrixName::query_bias, 0}, 0, 0, 1}),
            "projections.query.bias: the model has no such matrix");
  EXPECT_EQ(refusal(m, SetCell{{MatrixName::embeddings, 1}, 0, 0, 1}),
            "embeddings[1]: the model has no such matrix");
  EXPECT_EQ(refusal(without_projections(), SetCell{place_of_w_q, 0, 0, 1}),
            "projections.query.weight: the model has no such matrix");
}

TEST(SetBlock, WritesItsNumbersAndNoOthers) {
  const Model before = four_tokens();
  const Model after = apply(before, SetBlock{place_of_x, 1, 1, {{1, 2}, {3, 4}}});
  arma::mat expected = before.sequences[0].embeddings;
  expected(1, 1) = 1, expected(1, 2) = 2, expected(2, 1) = 3, expected(2, 2) = 4;
  EXPECT_TRUE(same(after.sequences[0].embeddings, expected));
}

TEST(SetBlock, RefusesWhatDoesNotFit) {
  const Model m = four_tokens();
  EXPECT_EQ(refusal(m, SetBlock{place_of_x, 3, 1, {{1, 2}, {3, 4}}}),
            "embeddings[3][1]: 2×2 numbers do not fit there, the matrix is 4×3");
  EXPECT_EQ(refusal(m, SetBlock{place_of_x, 1, 1, {{1, 2}, {NAN, 4}}}),
            "embeddings[2][1]: expected a finite number");
  EXPECT_NE(refusal(m, SetBlock{place_of_x, SIZE_MAX, 0, {{1, 2}, {3, 4}}}), "no error");
}

TEST(RenameToken, RenamesInOneSequenceOnly) {
  const Model m = apply(four_tokens(2), RenameToken{1, 2, "journey"});
  EXPECT_THAT(m.sequences[0].tokens, ElementsAre("0", "1", "2", "3"));
  EXPECT_THAT(m.sequences[1].tokens, ElementsAre("0", "1", "journey", "3"));
  EXPECT_EQ(refusal(m, RenameToken{1, 4, "place_of_x"}), "tokens[4]: there are only 4 tokens");
}

TEST(InsertToken, PutsZerosBeforeItsRowInEverySequence) {
  const Model before = four_tokens(2);
  const Model after = apply(before, InsertToken{1, "and"});
  for (std::size_t s : {0, 1}) {
    arma::mat expected = before.sequences[s].embeddings;
    expected.insert_rows(1, arma::mat(1, 3, arma::fill::zeros));
    EXPECT_TRUE(same(after.sequences[s].embeddings, expected));
    EXPECT_THAT(after.sequences[s].tokens, ElementsAre("0", "and", "1", "2", "3"));
  }
  EXPECT_TRUE(after.projections->query.weight.shares_with(before.projections->query.weight));
}

TEST(InsertToken, NamesATokenWithoutANameByItsIndex) {
  const Model m = apply(apply(four_tokens(), RenameToken{0, 3, "last"}), InsertToken{4, ""});
  EXPECT_THAT(m.sequences[0].tokens, ElementsAre("0", "1", "2", "last", "4"));
  EXPECT_NE(refusal(m, InsertToken{6, ""}), "no error");
}

TEST(InsertToken, ShiftsSwitchedMaskCellsAlong) {
  Model m = apply(four_tokens(), SwitchMaskCell{0, 3, true});
  m = apply(m, SwitchMaskCell{2, 0, false});
  m = apply(m, InsertToken{1, ""});
  EXPECT_THAT(m.mask.cells, ElementsAre(MaskCell{0, 4, true}, MaskCell{3, 0, false}));
}

TEST(InsertToken, KeepsItsOwnCellsOfAGivenDropoutMask) {
  const Model before = with_given_mask(four_tokens(2));
  const Model after = apply(before, InsertToken{1, ""});
  for (std::size_t k = 0; k < 4; ++k) {
    arma::mat expected = before.dropout.given[k];
    expected.insert_rows(1, arma::mat(1, 4, arma::fill::ones));
    expected.insert_cols(1, arma::mat(5, 1, arma::fill::ones));
    EXPECT_TRUE(same(after.dropout.given[k], expected));
  }
}

TEST(RemoveToken, UndoesAnInsertion) {
  Model m = with_given_mask(apply(four_tokens(2), SwitchMaskCell{3, 1, false}));
  m = apply(m, RenameToken{0, 2, "journey"});
  for (std::size_t row = 0; row <= 4; ++row)
    EXPECT_EQ(apply(apply(m, InsertToken{row, "place_of_x"}), RemoveToken{row}), m);
}

TEST(RemoveToken, TakesItsMaskCellsWithIt) {
  Model m = apply(four_tokens(), SwitchMaskCell{0, 2, true});
  m = apply(m, SwitchMaskCell{3, 1, false});
  EXPECT_THAT(apply(m, RemoveToken{2}).mask.cells, ElementsAre(MaskCell{2, 1, false}));
  EXPECT_THAT(apply(m, RemoveToken{1}).mask.cells, ElementsAre(MaskCell{0, 1, true}));
}

TEST(RemoveToken, RefusesTheLastToken) {
  EXPECT_EQ(refusal(apply(four_tokens(), SetTokenCount{1}), RemoveToken{0}),
            "tokens: the last token cannot be removed");
}

TEST(MoveToken, MovesNumbersAndNameToTheRowAskedFor) {
  const Model before = four_tokens();
  const Model down = apply(before, MoveToken{0, 0, 2});
  EXPECT_THAT(down.sequences[0].tokens, ElementsAre("1", "2", "0", "3"));
  EXPECT_TRUE(
      same(down.sequences[0].embeddings, before.sequences[0].embeddings->rows(arma::uvec{1, 2, 0, 3})));
  EXPECT_EQ(apply(down, MoveToken{0, 2, 0}), before);
}

TEST(MoveToken, TakesMaskCellsAlongInASingleSequence) {
  Model m = apply(four_tokens(), SwitchMaskCell{3, 1, false});
  EXPECT_THAT(apply(m, MoveToken{0, 1, 0}).mask.cells, ElementsAre(MaskCell{3, 0, false}));
  EXPECT_THAT(apply(m, MoveToken{0, 3, 0}).mask.cells, ElementsAre());  // a later key is hidden by the rule
}

TEST(MoveToken, LeavesTheMaskOfABatchAlone) {
  const Model m = apply(four_tokens(2), SwitchMaskCell{3, 1, false});
  const Model after = apply(m, MoveToken{1, 1, 0});
  EXPECT_EQ(after.mask, m.mask);
  EXPECT_EQ(after.sequences[0], m.sequences[0]);
}

TEST(MoveToken, MovesRowsAndColumnsOfItsGivenDropoutMask) {
  const Model before = with_given_mask(four_tokens(2));
  const Model after = apply(before, MoveToken{1, 3, 0});
  const arma::uvec order{3, 0, 1, 2};
  for (std::size_t k : {0, 1}) EXPECT_TRUE(after.dropout.given[k].shares_with(before.dropout.given[k]));
  for (std::size_t k : {2, 3})
    EXPECT_TRUE(same(after.dropout.given[k], before.dropout.given[k]->submat(order, order)));
}

TEST(SetTokenCount, KeepsTheFirstTokensAndAddsZeros) {
  const Model before = with_given_mask(apply(four_tokens(2), SwitchMaskCell{1, 0, false}));
  const Model more = apply(before, SetTokenCount{6});
  EXPECT_THAT(more.sequences[1].tokens, ElementsAre("0", "1", "2", "3", "4", "5"));
  EXPECT_TRUE(same(more.sequences[1].embeddings->head_rows(4), before.sequences[1].embeddings));
  EXPECT_TRUE(more.sequences[1].embeddings->tail_rows(2).is_zero());
  EXPECT_EQ(more.mask, before.mask);
  EXPECT_EQ(apply(more, SetTokenCount{4}), before);
}

TEST(SetTokenCount, DropsMaskCellsOfTokensThatGo) {
  const Model m = apply(four_tokens(), SwitchMaskCell{3, 1, false});
  EXPECT_TRUE(apply(m, SetTokenCount{3}).mask.cells.empty());
}

TEST(SetTokenCount, NamesBothNumbersWhenTheContextIsTooShort) {
  const Model m = apply(four_tokens(), SetContextLength{5});
  EXPECT_EQ(apply(m, SetTokenCount{5}).n_tokens(), 5u);
  EXPECT_EQ(refusal(m, SetTokenCount{6}),
            "context_length: expected at most 5 tokens (context_length), got 6");
  EXPECT_EQ(refusal(m, SetContextLength{3}),
            "context_length: expected at most 3 tokens (context_length), got 4");
  EXPECT_EQ(refusal(m, SetTokenCount{0}), "tokens: expected at least one token");
}

TEST(SetInputWidth, KeepsNumbersAndAddsZeros) {
  const Model before = four_tokens(2);
  const Model after = apply(before, SetInputWidth{5});
  for (std::size_t s : {0, 1}) {
    EXPECT_TRUE(same(after.sequences[s].embeddings->head_cols(3), before.sequences[s].embeddings));
    EXPECT_TRUE(after.sequences[s].embeddings->tail_cols(2).is_zero());
  }
  EXPECT_TRUE(same(after.projections->key.weight->head_rows(3), before.projections->key.weight));
  EXPECT_TRUE(after.projections->key.weight->tail_rows(2).is_zero());
  EXPECT_TRUE(after.projections->output->weight.shares_with(before.projections->output->weight));
  EXPECT_EQ(apply(after, SetInputWidth{3}), before);
}

TEST(SetInputWidth, MustFitTheHeadsWhenThereAreNoProjections) {
  Model m = apply(apply(without_projections(), SetInputWidth{4}), SetHeadCount{2});
  EXPECT_EQ(apply(m, SetInputWidth{6}).d_out(), 6u);
  EXPECT_EQ(refusal(m, SetInputWidth{5}),
            "d_in: expected a multiple of n_heads = 2 (nearest: 4 and 6), got 5");
  EXPECT_EQ(refusal(m, SetInputWidth{0}), "d_in: expected at least one column");
}

TEST(SetOutputWidth, ChangesEveryProjectionAndKeepsTheirNumbers) {
  const Model before = apply(four_tokens(), SetBias{Part::query, true});
  const Model after = apply(before, SetOutputWidth{6});
  const attention::Projections &was = *before.projections, &is = *after.projections;
  EXPECT_TRUE(same(is.query.weight->head_cols(4), was.query.weight));
  EXPECT_TRUE(is.query.weight->tail_cols(2).is_zero());
  EXPECT_TRUE(same((*is.key.bias)->head_cols(4), *was.key.bias));
  EXPECT_TRUE(same(is.output->weight->submat(0, 0, 3, 3), was.output->weight));
  EXPECT_EQ(arma::accu(arma::abs(*is.output->weight)), arma::accu(arma::abs(*was.output->weight)));
  EXPECT_EQ((*is.output->bias)->n_cols, 6u);
  EXPECT_TRUE(after.sequences[0].embeddings.shares_with(before.sequences[0].embeddings));
  EXPECT_EQ(apply(after, SetOutputWidth{4}), before);
}

TEST(SetOutputWidth, NamesTheWidthsThatTheHeadsCanShare) {
  Model m = apply(apply(four_tokens(), SetOutputWidth{8}), SetHeadCount{4});
  EXPECT_EQ(refusal(m, SetOutputWidth{6}),
            "d_out: expected a multiple of n_heads = 4 (nearest: 4 and 8), got 6");
  EXPECT_EQ(refusal(m, SetOutputWidth{3}), "d_out: expected a multiple of n_heads = 4 (nearest: 4), got 3");
  EXPECT_EQ(refusal(without_projections(), SetOutputWidth{6}),
            "d_out: the model has no projections, so d_out follows d_in");
}

TEST(SetHeadCount, NamesTheCountsThatDivideTheWidth) {
  const Model m = apply(four_tokens(), SetOutputWidth{6});
  EXPECT_EQ(apply(m, SetHeadCount{6}).d_head(), 1u);
  EXPECT_EQ(refusal(m, SetHeadCount{4}),
            "n_heads: expected a number of heads that divides d_out = 6 (1, 2, 3 or 6), got 4");
  EXPECT_THAT(refusal(m, SetHeadCount{0}), HasSubstr("got 0"));
}

TEST(SetHeadCount, KeepsGivenDropoutMasksByHead) {
  const Model two = with_given_mask(four_tokens(2));
  const Model four = apply(two, SetHeadCount{4});
  ASSERT_EQ(four.dropout.given.size(), 8u);
  EXPECT_TRUE(four.dropout.given[5].shares_with(two.dropout.given[3]));  // head 1 of sequence 1
  EXPECT_TRUE(same(four.dropout.given[6], arma::ones(4, 4)));
  EXPECT_EQ(apply(four, SetHeadCount{2}), two);
}

TEST(SetProjections, StartAsIdentities) {
  const Model m = apply(without_projections(), SetProjections{true});
  const arma::mat identity(3, 3, arma::fill::eye);
  for (MatrixName name : {MatrixName::query_weight, MatrixName::key_weight, MatrixName::value_weight})
    EXPECT_TRUE(same(*find_matrix(m, {name, 0}), identity));
  EXPECT_FALSE(m.projections->output.has_value());
}

TEST(SetProjections, CannotGoWhenTheHeadsDoNotDivideTheInput) {
  EXPECT_EQ(refusal(four_tokens(), SetProjections{false}),
            "n_heads: expected a number of heads that divides d_in = 3 (1 or 3), got 2");
}

TEST(SetOutputProjection, StartsAsIdentityAndGoes) {
  Model m = apply(four_tokens(), SetOutputProjection{false});
  EXPECT_FALSE(m.projections->output.has_value());
  m = apply(m, SetOutputProjection{true});
  EXPECT_TRUE(same(m.projections->output->weight, arma::mat(4, 4, arma::fill::eye)));
  EXPECT_FALSE(m.projections->output->bias.has_value());
  EXPECT_EQ(refusal(without_projections(), SetOutputProjection{true}),
            "projections.output: the model has no projections");
}

TEST(SetBias, StartsAsZerosAndGoes) {
  const Model before = four_tokens();
  const Model m = apply(before, SetBias{Part::value, true});
  ASSERT_TRUE(m.projections->value.bias.has_value());
  EXPECT_TRUE(same(*m.projections->value.bias, arma::zeros(1, 4)));
  EXPECT_EQ(apply(m, SetBias{Part::value, false}), before);
  EXPECT_EQ(refusal(apply(before, SetOutputProjection{false}), SetBias{Part::output, true}),
            "projections.output: the model has no output projection");
  EXPECT_EQ(refusal(without_projections(), SetBias{Part::query, true}),
            "projections: the model has no projections");
}

TEST(SwitchMaskCell, KeepsCellsSortedAndOnce) {
  Model m = four_tokens();
  for (const SwitchMaskCell& e : {SwitchMaskCell{3, 1, false}, SwitchMaskCell{0, 2, true},
                                  SwitchMaskCell{3, 0, false}, SwitchMaskCell{3, 1, false}})
    m = apply(m, e);
  EXPECT_THAT(m.mask.cells, ElementsAre(MaskCell{0, 2, true}, MaskCell{3, 0, false}, MaskCell{3, 1, false}));
  EXPECT_EQ(refusal(m, SwitchMaskCell{4, 0, true}), "mask[4]: there are only 4 rows");
  EXPECT_EQ(refusal(m, SwitchMaskCell{0, 9, true}), "mask[0][9]: there are only 4 columns");
  EXPECT_TRUE(apply(m, ClearMaskCells{}).mask.cells.empty());
}

TEST(SwitchMaskCell, BackToTheRuleIsNoLongerSwitched) {
  const Model m = four_tokens();
  EXPECT_EQ(apply(apply(m, SwitchMaskCell{0, 2, true}), SwitchMaskCell{0, 2, false}), m);
  EXPECT_EQ(apply(m, SwitchMaskCell{2, 0, true}), m);
}

TEST(SetCausal, KeepsOnlyCellsThatStillDifferFromTheRule) {
  Model m = apply(apply(four_tokens(), SwitchMaskCell{0, 2, true}), SwitchMaskCell{3, 1, false});
  m = apply(m, SetCausal{false});
  EXPECT_THAT(m.mask.cells, ElementsAre(MaskCell{3, 1, false}));
  EXPECT_THAT(apply(m, SetCausal{true}).mask.cells, ElementsAre(MaskCell{3, 1, false}));
}

TEST(SetDropoutRate, MustBeFromZeroToOne) {
  EXPECT_EQ(apply(four_tokens(), SetDropoutRate{1}).dropout.rate, 1);
  for (double rate : {1.5, -0.1, static_cast<double>(NAN)})
    EXPECT_EQ(refusal(four_tokens(), SetDropoutRate{rate}), "dropout.rate: expected a number from 0 to 1");
}

TEST(SetDropoutMask, MustHaveOneMatrixAHead) {
  const Model given = with_given_mask(four_tokens());
  EXPECT_EQ(apply(four_tokens(), SetDropoutMask{given.dropout.given}), given);
  EXPECT_EQ(apply(given, SetDropoutMask{}), four_tokens());
  EXPECT_THAT(refusal(four_tokens(), SetDropoutMask{{arma::mat(4, 4, arma::fill::ones)}}),
              HasSubstr("expected 2 matrices"));
}

TEST(SetScale, RefusesAFactorThatIsNotFinite) {
  EXPECT_EQ(refusal(four_tokens(), SetScale{{attention::ScaleRule::factor, INFINITY}}),
            "scale: expected a finite number");
}

TEST(AddSequence, CopiesASequenceWithItsDropoutMask) {
  const Model before = with_given_mask(four_tokens(2));
  const Model after = apply(before, AddSequence{0});
  ASSERT_EQ(after.sequences.size(), 3u);
  EXPECT_EQ(after.sequences[2], before.sequences[0]);
  EXPECT_TRUE(after.sequences[2].embeddings.shares_with(before.sequences[0].embeddings));
  EXPECT_TRUE(after.dropout.given[5].shares_with(before.dropout.given[1]));
  EXPECT_EQ(apply(after, RemoveSequence{2}), before);
  EXPECT_EQ(refusal(before, AddSequence{2}), "embeddings[2]: there are only 2 sequences");
}

TEST(RemoveSequence, TakesItsDropoutMaskAndLeavesTheLast) {
  const Model before = with_given_mask(four_tokens(2));
  const Model after = apply(before, RemoveSequence{0});
  EXPECT_EQ(after.sequences[0], before.sequences[1]);
  EXPECT_TRUE(after.dropout.given[0].shares_with(before.dropout.given[2]));
  EXPECT_EQ(refusal(after, RemoveSequence{0}), "embeddings: the last sequence cannot be removed");
}

TEST(ReplaceModel, RefusesAModelThatCannotBeComputed) {
  Model broken = four_tokens();
  broken.n_heads = 3;
  EXPECT_THAT(refusal(four_tokens(), ReplaceModel{broken}), HasSubstr("n_heads: expected"));
  EXPECT_THAT(refusal(four_tokens(), ReplaceModel{Model{}}), HasSubstr("expected at least one sequence"));
  EXPECT_EQ(apply(four_tokens(), ReplaceModel{four_tokens(2)}), four_tokens(2));
}

TEST(Apply, GivesAnEqualModelWhenNothingChanges) {
  const Model m = with_given_mask(apply(four_tokens(2), SwitchMaskCell{3, 1, false}));
  for (const Edit& edit : std::initializer_list<Edit>{
           SetTokenCount{4}, SetInputWidth{3}, SetOutputWidth{4}, SetHeadCount{2}, SetProjections{true},
           SetOutputProjection{true}, SetBias{Part::key, true}, SetBias{Part::query, false}, SetScale{},
           SetCausal{true}, MoveToken{0, 2, 2}, RenameToken{0, 1, "1"}, SwitchMaskCell{3, 1, false},
           SetDropoutRate{0}, SetContextLength{std::nullopt}, ReplaceModel{m}})
    EXPECT_EQ(editing::apply(m, edit), m) << describe(edit);
}

TEST(Apply, RefusesSizesBeforeItAllocatesThem) {
  const Model m = four_tokens();
  EXPECT_EQ(refusal(m, SetTokenCount{SIZE_MAX}),
            "embeddings: expected at most 16384 tokens, got 18446744073709551615");
  EXPECT_EQ(refusal(m, SetInputWidth{16385}), "embeddings: expected at most 16384 columns (d_in), got 16385");
  EXPECT_THAT(refusal(m, SetOutputWidth{20000}),
              HasSubstr("expected at most 16384 columns (d_out), got 20000"));
  // Four projections of 16384² numbers are 8 GiB, and there are the embeddings.
  EXPECT_THAT(refusal(editing::apply(m, SetInputWidth{16384}), SetOutputWidth{16384}),
              HasSubstr("would need 8.0 GiB, expected at most 8.0 GiB"));
}

TEST(CheckSize, AcceptsAThousandTokensInTwelveHeads) {
  // (12 · 9 + 1) · 1024² + 1024 · (768 + 6 · 768) numbers of 8 bytes
  EXPECT_EQ(attention::trace_bytes(1024, 768, 768, 12), 8u * (109u * 1048576u + 1024u * 5376u));
  EXPECT_FALSE(attention::check_size({1, 1024, 768, 768, 12, true, true, false}).has_value());
}

TEST(CheckSize, LeavesTheMemoryOfTheStagesToWhoeverComputesThem) {
  EXPECT_FALSE(attention::check_size({1, 16384, 768, 768, 12, true, true, false}).has_value());
}

TEST(CheckSize, CountsProjectionsAndGivenMasks) {
  const attention::Size wide{1, 1, 16384, 16384, 1, true, true, false};  // four matrices of 2 GiB
  EXPECT_TRUE(attention::check_size(wide).has_value());
  attention::Size without_output = wide;
  without_output.output_projection = false;
  EXPECT_FALSE(attention::check_size(without_output).has_value());
  const attention::Size batch{64, 4096, 8, 8, 1, false, false, true};  // 64 masks of 128 MiB
  EXPECT_TRUE(attention::check_size(batch).has_value());
}

TEST(Target, TellsCellsApart) {
  EXPECT_EQ(target(SetCell{place_of_x, 1, 2, 5}), target(SetCell{place_of_x, 1, 2, 6}));
  EXPECT_NE(target(SetCell{place_of_x, 1, 2, 5}), target(SetCell{place_of_x, 2, 1, 5}));
  EXPECT_NE(target(SetCell{place_of_x, 1, 2, 5}), target(SetCell{{MatrixName::embeddings, 1}, 1, 2, 5}));
  EXPECT_NE(target(SetCell{place_of_x, 1, 2, 5}), target(SetCell{place_of_w_q, 1, 2, 5}));
  EXPECT_EQ(target(SetCell{place_of_x, 1, 2, 5}), "cell embeddings/0 1 2");
}

TEST(Target, DiffersBetweenKindsOfEdit) {
  Random random(3);
  std::vector<std::string> targets;
  for (std::size_t kind = 0; kind < std::variant_size_v<Edit>; ++kind) {
    std::string key;  // taking something back has none, doing it has
    for (int k = 0; k < 20 && key.empty(); ++k) key = target(random_edit(random, four_tokens(), kind));
    if (!key.empty()) targets.push_back(key);
  }
  std::sort(targets.begin(), targets.end());
  EXPECT_EQ(std::adjacent_find(targets.begin(), targets.end()), targets.end());
  EXPECT_EQ(targets.size(), std::variant_size_v<Edit> - 13);  // thirteen kinds never join
}

TEST(Describe, SaysWhatUndoWouldTakeBack) {
  EXPECT_EQ(describe(SetCell{place_of_x, 1, 2, 5}), "change of X[1,2]");
  EXPECT_EQ(describe(SetCell{{MatrixName::key_bias, 0}, 0, 2, 5}), "change of b_k[2]");
  EXPECT_EQ(describe(SetCausal{}), "causal mask");
  EXPECT_EQ(describe(RemoveToken{}), "removal of a token");
}

}  // namespace
}  // namespace core::editing
