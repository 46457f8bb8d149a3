#include "core/editing/edit.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "core/graph/attend.hpp"
#include "core/graph/given_model.hpp"
#include "core/graph/validation.hpp"
#include "tests/core/editing/random_edit.hpp"
#include "tests/support/random_model.hpp"

namespace core::editing {
namespace {

using core::attention::Stage;

using attention::MaskCell;
using attention::Model;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr MatrixRef place_of_x{MatrixName::embeddings, 0}, place_of_w_q{MatrixName::query_weight, 0};

/// Returns a model of four tokens and two heads, d_in = 3, d_out = 4.
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
  const double number = (*before.sequences[0].embeddings)(1, 2);
  EXPECT_TRUE(apply(before, SetCell{place_of_x, 1, 2, number})
                  .sequences[0]
                  .embeddings.shares_with(before.sequences[0].embeddings))
      << "the same number";
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

TEST(SetCell, ReachesEveryMatrixByItsName) {
  Model m = four_tokens(2);
  for (ProjectionName part : {ProjectionName::query, ProjectionName::value})
    m = apply(m, SetBias{part, true});
  using enum MatrixName;
  double value = 0;
  for (const MatrixRef place : {MatrixRef{embeddings, 1},
                                {query_weight},
                                {key_weight},
                                {value_weight},
                                {output_weight},
                                {query_bias},
                                {key_bias},
                                {value_bias},
                                {output_bias}}) {
    m = apply(m, SetCell{place, 0, 1, ++value});
    EXPECT_EQ((**find_matrix(m, place))(0, 1), value);
  }
  const auto& [query, key, v, output] = *m.projections;
  value = 0;
  for (const attention::SharedMatrix* matrix : std::initializer_list<const attention::SharedMatrix*>{
           &m.sequences[1].embeddings, &query.weight, &key.weight, &v.weight, &output->weight, &*query.bias,
           &*key.bias, &*v.bias, &*output->bias})
    EXPECT_EQ((**matrix)(0, 1), ++value);
}

TEST(SetBlock, WritesItsNumbersAndNoOthers) {
  const Model before = four_tokens();
  const Model after = apply(before, SetBlock{place_of_x, 1, 1, {{1, 2}, {3, 4}}});
  arma::mat expected = before.sequences[0].embeddings;
  expected(1, 1) = 1, expected(1, 2) = 2, expected(2, 1) = 3, expected(2, 2) = 4;
  EXPECT_TRUE(same(after.sequences[0].embeddings, expected));
}

TEST(RenameToken, RenamesInOneSequenceOnly) {
  const Model m = apply(four_tokens(2), RenameToken{1, 2, "journey"});
  EXPECT_THAT(m.sequences[0].tokens, ElementsAre("0", "1", "2", "3"));
  EXPECT_THAT(m.sequences[1].tokens, ElementsAre("0", "1", "journey", "3"));
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
  EXPECT_THAT(apply(m, MoveToken{0, 3, 0}).mask.cells, ElementsAre());  // the causal rule masks a later key
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
  EXPECT_TRUE(apply(before, SetTokenCount{1}).mask.cells.empty());
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

TEST(SetOutputWidth, ChangesEveryProjectionAndKeepsTheirNumbers) {
  const Model before = apply(four_tokens(), SetBias{ProjectionName::query, true});
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

TEST(SetHeadCount, KeepsGivenDropoutMasksByHead) {
  const Model two = with_given_mask(four_tokens(2));
  const Model four = apply(two, SetHeadCount{4});
  ASSERT_EQ(four.dropout.given.size(), 8u);
  EXPECT_TRUE(four.dropout.given[5].shares_with(two.dropout.given[3]));  // head 1 of sequence 1
  EXPECT_TRUE(same(four.dropout.given[6], arma::ones(4, 4)));
  EXPECT_EQ(apply(four, SetHeadCount{2}), two);
}

TEST(WhatIsSwitchedOn, StartsAsIdentitiesOrZerosAndGoesAgain) {
  const Model projected = apply(without_projections(), SetProjections{true});
  for (MatrixName name : {MatrixName::query_weight, MatrixName::key_weight, MatrixName::value_weight})
    EXPECT_TRUE(same(*find_matrix(projected, {name, 0}), arma::eye(3, 3)));
  EXPECT_FALSE(projected.projections->output.has_value());
  const Model before = four_tokens(), no_output = apply(before, SetOutputProjection{false});
  EXPECT_FALSE(no_output.projections->output.has_value());
  const Model output = apply(no_output, SetOutputProjection{true});
  EXPECT_TRUE(same(output.projections->output->weight, arma::eye(4, 4)));
  EXPECT_FALSE(output.projections->output->bias.has_value());
  const Model biased = apply(before, SetBias{ProjectionName::value, true});
  ASSERT_TRUE(biased.projections->value.bias.has_value());
  EXPECT_TRUE(same(*biased.projections->value.bias, arma::zeros(1, 4)));
  EXPECT_EQ(apply(biased, SetBias{ProjectionName::value, false}), before);
}

TEST(SwitchMaskCell, KeepsCellsSortedAndOnce) {
  Model m = four_tokens();
  for (const SwitchMaskCell& e : {SwitchMaskCell{3, 1, false}, SwitchMaskCell{0, 2, true},
                                  SwitchMaskCell{3, 0, false}, SwitchMaskCell{3, 1, false}})
    m = apply(m, e);
  EXPECT_THAT(m.mask.cells, ElementsAre(MaskCell{0, 2, true}, MaskCell{3, 0, false}, MaskCell{3, 1, false}));
  EXPECT_TRUE(apply(m, ClearMaskCells{}).mask.cells.empty());
  const Model plain = four_tokens();  // back to the rule a cell is no longer switched
  EXPECT_EQ(apply(apply(plain, SwitchMaskCell{0, 2, true}), SwitchMaskCell{0, 2, false}), plain);
  EXPECT_EQ(apply(plain, SwitchMaskCell{2, 0, true}), plain);
}

TEST(Edits, AreRefusedByTheNameOfWhatDoesNotFit) {
  const Model m = four_tokens(), one_token = apply(m, SetTokenCount{1}), plain = without_projections(),
              wide = apply(apply(m, SetOutputWidth{8}), SetHeadCount{4}),
              short_context = apply(m, SetContextLength{5}), no_output = apply(m, SetOutputProjection{false});
  Model broken = m;
  broken.n_heads = 3;
  const std::vector<attention::SharedMatrix> square(2, arma::mat(5, 5));
  using enum attention::Stage;
  struct Case {
    const Model& model;
    Edit edit;
    const char* line;  ///< or part of it
  };
  const Case cases[]{
      {m, SetCell{place_of_x, 1, 2, NAN}, "embeddings[1][2]: expected a finite number"},
      {m, SetCell{place_of_w_q, 1, 2, INFINITY}, "projections.query.weight[1][2]: expected a finite number"},
      {m, SetCell{place_of_x, 4, 0, 1}, "embeddings[4][0]: 1×1 numbers do not fit there, the matrix is 4×3"},
      {m, SetCell{place_of_x, 0, 3, 1}, "embeddings[0][3]"},
      {m, SetCell{{MatrixName::query_bias, 0}, 0, 0, 1}, "projections.query.bias: the model has no such"},
      {m, SetCell{{MatrixName::embeddings, 1}, 0, 0, 1}, "embeddings[1]: the model has no such matrix"},
      {plain, SetCell{place_of_w_q, 0, 0, 1}, "projections.query.weight: the model has no such matrix"},
      {m, SetBlock{place_of_x, 3, 1, {{1, 2}, {3, 4}}}, "embeddings[3][1]: 2×2 numbers do not fit there"},
      {m, SetBlock{place_of_x, 1, 1, {{1, 2}, {NAN, 4}}}, "embeddings[2][1]: expected a finite number"},
      {m, SetBlock{place_of_x, SIZE_MAX, 0, {{1, 2}, {3, 4}}}, "do not fit there"},
      {m, RenameToken{0, 4, "x"}, "tokens[4]: there are only 4 tokens"},
      {m, InsertToken{5, ""}, "tokens[5]"},
      {one_token, RemoveToken{0}, "tokens: the last token cannot be removed"},
      {m, AddSequence{1}, "embeddings[1]: there are only 1 sequence"},
      {m, RemoveSequence{0}, "embeddings: the last sequence cannot be removed"},
      {short_context, SetTokenCount{6}, "expected at most 5 tokens (context_length), got 6"},
      {m, SetContextLength{3}, "expected at most 3 tokens (context_length), got 4"},
      {m, SetTokenCount{0}, "tokens: expected at least one token"},
      {m, SetTokenCount{SIZE_MAX}, "at most 16,384 tokens"},
      {m, SetInputWidth{16385}, "expected at most 16384 columns (d_in), got 16385"},
      {m, SetInputWidth{0}, "d_in: expected at least one column"},
      {m, SetOutputWidth{20000}, "expected at most 16384 columns (d_out), got 20000"},
      // Four projections of 16384² numbers are 8 GiB, plus the embeddings.
      {apply(m, SetInputWidth{16384}), SetOutputWidth{16384}, "would need 8.0 GiB, expected at most 8.0 GiB"},
      {wide, SetOutputWidth{6}, "d_out = 6 is no multiple of 4 heads (use 4 or 8)"},
      {wide, SetOutputWidth{3}, "d_out = 3 is no multiple of 4 heads (use 4)"},
      {plain, SetOutputWidth{6}, "d_out: the model has no projections, so d_out follows d_in"},
      {wide, SetHeadCount{3}, "3 heads do not divide d_out = 8 (use 1, 2, 4 or 8)"},
      {m, SetHeadCount{0}, "0 heads do not divide"},
      {m, SetProjections{false}, "2 heads do not divide d_in = 3 (use 1 or 3)"},
      {plain, SetOutputProjection{true}, "projections.output: the model has no projections"},
      {no_output, SetBias{ProjectionName::output, true},
       "projections.output: the model has no output projection"},
      {plain, SetBias{ProjectionName::query, true}, "projections: the model has no projections"},
      {m, SwitchMaskCell{4, 0, true}, "mask[4]: there are only 4 rows"},
      {m, SwitchMaskCell{0, 9, true}, "mask[0][9]: there are only 4 columns"},
      {m, SetDropoutRate{1.5}, "dropout.rate: expected a number from 0 to 1"},
      {m, SetDropoutRate{-0.1}, "dropout.rate: expected a number from 0 to 1"},
      {m, SetDropoutRate{NAN}, "dropout.rate: expected a number from 0 to 1"},
      {m, SetDropoutMask{{arma::mat(4, 4, arma::fill::ones)}}, "expected 2 matrices"},
      {m, SetScale{{attention::ScaleRule::factor, INFINITY}}, "scale: expected a finite number"},
      {m, ReplaceModel{broken}, "n_heads: expected"},
      {m, ReplaceModel{Model{}}, "expected at least one sequence"},
      {m, OverrideStage{{weights, square}}, "given.weights[0]: expected 4×5 (n_tokens × n_keys), got 5×5"},
      {m, OverrideStage{{embeddings, square}},
       "given.embeddings: expected one of queries, keys, values, scores"},
      {m, OverrideValue{{scores, 0, 2, 0, 0}, 1}, "scores[2]: there are only 2 heads"},
      {m, OverrideValue{{scores, 0, 0, 4, 0}, 1}, "scores[4]: there are only 4 rows"},
      {m, OverrideValue{{queries, 0, 0, 0, 2}, 1}, "queries[2]: there are only 2 columns"},
      {m, OverrideValue{{row_sums, 0, 0, 0, 0}, 1}, "row_sums: no cell of it can be typed over"},
      {m, OverrideValue{{mask, 0, 0, 0, 0}, 1}, "mask: no cell of it can be typed over"},
      {m, ToggleHead{2, false}, "heads_off[2]: there are only 2 heads"},
  };
  for (const auto& [model, edit, line] : cases) EXPECT_THAT(refusal(model, edit), HasSubstr(line));
  EXPECT_EQ(apply(wide, SetHeadCount{8}).d_head(), 1u);
  EXPECT_EQ(apply(m, SetDropoutRate{1}).dropout.rate, 1);
}

TEST(SetCausal, KeepsOnlyCellsThatStillDifferFromTheRule) {
  Model m = apply(apply(four_tokens(), SwitchMaskCell{0, 2, true}), SwitchMaskCell{3, 1, false});
  m = apply(m, SetCausal{false});
  EXPECT_THAT(m.mask.cells, ElementsAre(MaskCell{3, 1, false}));
  EXPECT_THAT(apply(m, SetCausal{true}).mask.cells, ElementsAre(MaskCell{3, 1, false}));
}

TEST(SetDropoutMask, MustHaveOneMatrixAHead) {
  const Model given = with_given_mask(four_tokens());
  EXPECT_EQ(apply(four_tokens(), SetDropoutMask{given.dropout.given}), given);
  EXPECT_EQ(apply(given, SetDropoutMask{}), four_tokens());
}

TEST(Sequences, AreCopiedAndRemovedWithTheirDropoutMasks) {
  const Model before = with_given_mask(four_tokens(2));
  const Model after = apply(before, AddSequence{0});
  ASSERT_EQ(after.sequences.size(), 3u);
  EXPECT_EQ(after.sequences[2], before.sequences[0]);
  EXPECT_TRUE(after.sequences[2].embeddings.shares_with(before.sequences[0].embeddings));
  EXPECT_TRUE(after.dropout.given[5].shares_with(before.dropout.given[1]));
  EXPECT_EQ(apply(after, RemoveSequence{2}), before);
  const Model fewer = apply(before, RemoveSequence{0});
  EXPECT_EQ(fewer.sequences[0], before.sequences[1]);
  EXPECT_TRUE(fewer.dropout.given[0].shares_with(before.dropout.given[2]));
}

TEST(Apply, GivesAnEqualModelWhenNothingChanges) {
  const Model m = with_given_mask(apply(four_tokens(2), SwitchMaskCell{3, 1, false}));
  for (const Edit& edit : std::initializer_list<Edit>{
           SetTokenCount{4}, SetInputWidth{3}, SetOutputWidth{4}, SetHeadCount{2}, SetProjections{true},
           SetOutputProjection{true}, SetBias{ProjectionName::key, true},
           SetBias{ProjectionName::query, false}, SetScale{}, SetCausal{true}, MoveToken{0, 2, 2},
           RenameToken{0, 1, "1"}, SwitchMaskCell{3, 1, false}, SetDropoutRate{0},
           SetContextLength{std::nullopt}, ReplaceModel{m}})
    EXPECT_EQ(editing::apply(m, edit), m) << describe(edit);
}

TEST(CheckSize, AcceptsAThousandTokensInTwelveHeads) {
  // (12 · 9 + 1) · 1024² + 1024 · (768 + 6 · 768) numbers of 8 bytes
  EXPECT_EQ(attention::trace_bytes(1024, 768, 768, 12), 8u * (109u * 1048576u + 1024u * 5376u));
  EXPECT_FALSE(attention::check_size({1, 1024, 768, 768, 12, true, true, false}).has_value());
  EXPECT_FALSE(attention::check_size({1, 16384, 768, 768, 12, true, true, false}).has_value())
      << "the memory of the stages is left to whoever computes them";
}

TEST(CheckSize, CountsProjectionsAndGivenMasks) {
  const attention::ModelSize wide{1, 1, 16384, 16384, 1, true, true, false};  // four matrices of 2 GiB
  EXPECT_TRUE(attention::check_size(wide).has_value());
  attention::ModelSize without_output = wide;
  without_output.output_projection = false;
  EXPECT_FALSE(attention::check_size(without_output).has_value());
  const attention::ModelSize batch{64, 4096, 8, 8, 1, false, false, true};  // 64 masks of 128 MiB
  EXPECT_TRUE(attention::check_size(batch).has_value());
}

TEST(Target, TellsCellsApart) {
  EXPECT_EQ(target(SetCell{place_of_x, 1, 2, 5}), target(SetCell{place_of_x, 1, 2, 6}));
  EXPECT_NE(target(SetCell{place_of_x, 1, 2, 5}), target(SetCell{place_of_x, 2, 1, 5}));
  EXPECT_NE(target(SetCell{place_of_x, 1, 2, 5}), target(SetCell{{MatrixName::embeddings, 1}, 1, 2, 5}));
  EXPECT_NE(target(SetCell{place_of_x, 1, 2, 5}), target(SetCell{place_of_w_q, 1, 2, 5}));
  EXPECT_EQ(describe(SetCell{place_of_x, 1, 2, 5}), "change of X[1,2]");
  EXPECT_EQ(describe(SetCell{{MatrixName::key_bias, 0}, 0, 2, 5}), "change of b_k[2]");
  using enum attention::Stage;
  EXPECT_EQ(target(OverrideValue{{scores, 0, 0, 1, 2}, 5}), target(OverrideValue{{scores, 0, 0, 1, 2}, 6}));
  EXPECT_NE(target(OverrideValue{{scores, 0, 0, 1, 2}, 5}), target(OverrideValue{{scores, 0, 1, 1, 2}, 5}));
}

TEST(Target, DiffersBetweenKindsOfEdit) {
  Random random(3);
  std::vector<std::string> targets;
  for (std::size_t kind = 0; kind < std::variant_size_v<Edit>; ++kind) {
    std::string key;  // reverting an override has none, setting it has
    for (int k = 0; k < 20 && key.empty(); ++k) key = target(random_edit(random, four_tokens(), kind));
    if (!key.empty()) targets.push_back(key);
  }
  std::sort(targets.begin(), targets.end());
  EXPECT_EQ(std::adjacent_find(targets.begin(), targets.end()), targets.end());
  EXPECT_EQ(targets.size(), std::variant_size_v<Edit> - 13);  // thirteen kinds never merge into one step
}

using attention::GivenStage;
using enum attention::Stage;
using attention::SharedMatrix;

/// Returns a model of three tokens and two heads, d_head = 2.
Model three_tokens(std::size_t n_sequences = 1) {
  support::Random random(41);
  return support::model(random, 3, 3, 4, 2, n_sequences);
}

/// Returns a given stage with [row][column] = 10 · row + column in every matrix.
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

TEST(OverrideStage, IsTakenBackByComputingIt) {
  const Model before = three_tokens();
  const Model given = editing::apply(before, OverrideStage{counted(weights, 3, 3)});
  EXPECT_EQ(attention::attend(given).at(Stage::weights, 1)(2, 1), 21);
  EXPECT_EQ(editing::apply(given, ClearStageOverride{weights}), before);
  EXPECT_EQ(editing::apply(before, ClearStageOverride{weights}), before);
}

TEST(OverrideStage, NumbersKeysThatAreOtherTokens) {
  const Model before = editing::apply(three_tokens(), SwitchMaskCell{0, 2, true});
  const Model wide = editing::apply(before, OverrideStage{counted(weights, 3, 5)});
  EXPECT_EQ(wide.sequences[0].keys(), attention::numbered_tokens(5));
  const Model narrow = editing::apply(wide, OverrideStage{counted(weights, 3, 2)});
  EXPECT_TRUE(narrow.mask.cells.empty());
  EXPECT_TRUE(editing::apply(wide, ClearStageOverride{weights}).sequences[0].key_tokens.empty());
}

TEST(OverrideStage, ForgetsCellsThatItHides) {
  Model model = editing::apply(three_tokens(), OverrideValue{{scores, 0, 0, 1, 1}, 3});
  model = editing::apply(model, OverrideValue{{contexts, 0, 0, 1, 1}, 4});
  model = editing::apply(model, OverrideStage{counted(weights, 3, 3)});
  ASSERT_EQ(model.given.cells.size(), 1u);
  EXPECT_EQ(model.given.cells[0].place.stage, contexts);
}

TEST(OverrideValue, SetsAndTakesBackOneCell) {
  const Model before = three_tokens();
  const Model typed = editing::apply(before, OverrideValue{{scores, 0, 1, 2, 0}, 0.5});
  EXPECT_EQ(attention::attend(typed).at(Stage::scores, 1)(2, 0), 0.5);
  const Model again = editing::apply(typed, OverrideValue{{scores, 0, 1, 2, 0}, 0.75});
  EXPECT_EQ(again.given.cells.size(), 1u);
  EXPECT_EQ(editing::apply(again, OverrideValue{{scores, 0, 1, 2, 0}, std::nullopt}), before);
  EXPECT_EQ(editing::apply(again, ClearOverrides{}), before);
}

TEST(OverrideValue, IsForgottenWithItsStage) {
  Model model = editing::apply(three_tokens(), SetMaskMethod{attention::MaskMethod::renormalize});
  model = editing::apply(model, OverrideValue{{row_sums, 0, 0, 1, 0}, 2});
  EXPECT_TRUE(
      editing::apply(model, SetMaskMethod{attention::MaskMethod::negative_infinity}).given.cells.empty());
}

TEST(ToggleHead, GoesOffAndOn) {
  const Model before = three_tokens();
  const Model off = editing::apply(before, ToggleHead{1, false});
  EXPECT_EQ(off.heads_off, std::vector<std::size_t>{1});
  EXPECT_EQ(editing::apply(off, ToggleHead{1, false}), off);
  EXPECT_EQ(editing::apply(off, ToggleHead{1, true}), before);
  EXPECT_TRUE(editing::apply(off, SetHeadCount{1}).heads_off.empty());
}

TEST(SetInputWidth, GivesEmbeddingsToAModelThatHasNone) {
  const Model model = attention::model_of({counted(weights, 3, 3, 1)});
  EXPECT_TRUE(same(*editing::apply(model, SetInputWidth{2}).sequences[0].embeddings, arma::zeros(3, 2)));
}

TEST(TokensOfGivenStages, TakeTheirNumbersAlong) {
  Model model = editing::apply(three_tokens(), OverrideStage{counted(scores, 3, 3)});
  model = editing::apply(model, OverrideValue{{weights, 0, 1, 2, 1}, 0.25});
  const Model moved = editing::apply(model, MoveToken{0, 2, 0});
  EXPECT_TRUE(same(given_of(moved, scores), arma::mat{{22, 20, 21}, {2, 0, 1}, {12, 10, 11}}));
  EXPECT_EQ(moved.given.cells[0].place, (attention::GivenCellAddress{weights, 0, 1, 0, 2}));
  const Model inserted = editing::apply(model, InsertToken{1, "new"});
  EXPECT_TRUE(same(given_of(inserted, scores),
                   arma::mat{{0, 0, 1, 2}, {0, 0, 0, 0}, {10, 0, 11, 12}, {20, 0, 21, 22}}));
  EXPECT_EQ(editing::apply(inserted, RemoveToken{1}), model);
  EXPECT_TRUE(editing::apply(model, RemoveToken{2}).given.cells.empty());
}

TEST(TokensOfGivenStages, LeaveOtherKeysAlone) {
  const Model model = editing::apply(three_tokens(), OverrideStage{counted(weights, 3, 5)});
  const Model fewer = editing::apply(model, RemoveToken{0});
  EXPECT_TRUE(same(given_of(fewer, weights), arma::mat{{10, 11, 12, 13, 14}, {20, 21, 22, 23, 24}}));
}

TEST(SequencesOfGivenStages, TakeTheirNumbersAlong) {
  Model model = editing::apply(three_tokens(2), OverrideStage{counted(keys, 3, 2, 4)});
  model = editing::apply(model, OverrideValue{{weights, 1, 0, 0, 0}, 0.25});
  const Model more = editing::apply(model, AddSequence{1});
  EXPECT_EQ(more.given.find(keys)->matrices.size(), 6u);
  EXPECT_EQ(more.given.cells[1].place.sequence, 2u);
  EXPECT_EQ(editing::apply(more, RemoveSequence{2}), model);
  EXPECT_EQ(editing::apply(model, RemoveSequence{0}).given.cells[0].place.sequence, 0u);
}

}  // namespace
}  // namespace core::editing
