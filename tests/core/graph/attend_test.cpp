#include "core/graph/attend.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "core/base/error.hpp"
#include "core/engine/engine.hpp"
#include "core/graph/dropout.hpp"
#include "tests/support/random_model.hpp"

namespace core::attention {
namespace {

using support::Random;

/// Returns a model of six tokens and two heads, d_in = 3, d_head = 2.
Model six_tokens(std::size_t n_sequences = 1) {
  Random random(5);
  return support::model(random, 6, 3, 4, 2, n_sequences);
}

Model with_method(MaskMethod method) {
  Model m = six_tokens();
  m.mask.method = method;
  return m;
}

Model without_projections(arma::mat embeddings) {
  Model m;
  m.sequences.push_back({numbered_tokens(embeddings.n_rows), std::move(embeddings)});
  m.scale.rule = ScaleRule::none;
  return m;
}

Model with_another_token_5(Model m) {
  m.sequences[0].embeddings.edit().row(5) = arma::rowvec{1.5, -2, 0.25};
  return m;
}

bool same(const arma::mat& a, const arma::mat& b) {
  return arma::approx_equal(a, b, "absdiff", 0);
}
bool close(const arma::mat& a, const arma::mat& b) {
  return arma::approx_equal(a, b, "absdiff", 1e-14);
}

TEST(Weights, OfEachRowSumToOneUnlessTheyAreLeftAsTheyAre) {
  Random random(6);
  for (MaskMethod method :
       {MaskMethod::negative_infinity, MaskMethod::large_negative, MaskMethod::renormalize})
    for (bool causal : {true, false}) {
      Model m = support::model(random, 9, 4, 6, 3);
      m.mask.method = method;
      m.mask.causal = causal;
      const Trace trace = attend(m);
      for (std::size_t h = 0; h < 3; ++h)
        EXPECT_TRUE(close(arma::sum(*trace.at(Stage::weights, h), 1), arma::ones(9, 1)));
    }
}

TEST(ZeroAfterSoftmax, LeavesRowsThatSumToLessThanOne) {
  const Trace trace = attend(with_method(MaskMethod::zero_after_softmax));
  for (std::size_t h = 0; h < trace.n_heads(); ++h) {
    const arma::vec sums = arma::sum(*trace.at(Stage::weights, h), 1);
    EXPECT_LT(sums.head(5).max(), 1);
    EXPECT_NEAR(sums(5), 1, 1e-14);
  }
}

TEST(CausalMask, LeavesNoWeightOnLaterTokens) {
  for (int method = 0; method < 4; ++method) {
    const Trace trace = attend(with_method(static_cast<MaskMethod>(method)));
    for (std::size_t h = 0; h < trace.n_heads(); ++h)
      EXPECT_TRUE(same(trace.at(Stage::weights, h), arma::trimatl(*trace.at(Stage::weights, h))));
  }
}

TEST(CausalMask, BeforeTheSoftmaxKeepsALaterTokenOutToTheLastBit) {
  for (MaskMethod method : {MaskMethod::negative_infinity, MaskMethod::large_negative}) {
    const Model m = with_method(method);
    const Trace before = attend(m), after = attend(with_another_token_5(m));
    EXPECT_TRUE(same(before.at(Stage::output)->head_rows(5), after.at(Stage::output)->head_rows(5)));
    EXPECT_FALSE(
        arma::approx_equal(before.at(Stage::output).row(5), after.at(Stage::output).row(5), "absdiff", 1e-6));
  }
}

TEST(CausalMask, RenormalizedKeepsALaterTokenOutUpToRounding) {
  const Model m = with_method(MaskMethod::renormalize);
  const Trace before = attend(m), after = attend(with_another_token_5(m));
  EXPECT_TRUE(close(before.at(Stage::output)->head_rows(5), after.at(Stage::output)->head_rows(5)));
  EXPECT_FALSE(arma::approx_equal(before.at(Stage::row_sums, 0)->head_rows(5),
                                  after.at(Stage::row_sums, 0)->head_rows(5), "absdiff", 1e-6));
}

TEST(ZeroAfterSoftmax, LetsALaterTokenMoveEarlierOutputs) {
  const Model m = with_method(MaskMethod::zero_after_softmax);
  const Trace before = attend(m), after = attend(with_another_token_5(m));
  for (arma::uword i = 0; i < 5; ++i)
    EXPECT_GT(arma::abs(before.at(Stage::output).row(i) - after.at(Stage::output).row(i)).max(), 1e-6)
        << "row " << i;
}

TEST(ReshapeWithoutTranspose, LeaksALaterTokenIntoAnEarlierOutput) {
  Model m = six_tokens();
  m.merge = CombineRule::reshape_without_transpose;
  const Trace before = attend(m), after = attend(with_another_token_5(m));
  // [2 heads][6 tokens][2 columns] read as [6][4]: token 5 of head 0 is the second half of row 2.
  EXPECT_GT(arma::abs(before.at(Stage::output).row(2) - after.at(Stage::output).row(2)).max(), 1e-6);
  EXPECT_TRUE(same(before.at(Stage::output)->rows(arma::uvec{0, 1, 3, 4}),
                   after.at(Stage::output)->rows(arma::uvec{0, 1, 3, 4})));
}

TEST(Softmax, IgnoresAConstantAddedToTheScores) {
  // A bias on the keys adds q·b to the whole row of scores.
  Model plain = six_tokens();
  plain.projections->key.bias.reset();
  Model shifted = plain;
  shifted.projections->key.bias = arma::mat{{3, -1, 2, 5}};
  const Trace a = attend(plain), b = attend(shifted);
  EXPECT_GT(arma::abs(*a.at(Stage::scores, 0) - *b.at(Stage::scores, 0)).min(), 1e-3);
  EXPECT_TRUE(arma::approx_equal(*a.at(Stage::weights, 0), *b.at(Stage::weights, 0), "absdiff", 1e-13));
  EXPECT_TRUE(arma::approx_equal(*a.at(Stage::output), *b.at(Stage::output), "absdiff", 1e-13));
}

TEST(Renormalize, EqualsNegativeInfinityForModerateScores) {
  const Trace a = attend(with_method(MaskMethod::renormalize));
  const Trace b = attend(with_method(MaskMethod::negative_infinity));
  for (std::size_t h = 0; h < 2; ++h) EXPECT_TRUE(close(a.at(Stage::weights, h), b.at(Stage::weights, h)));
  EXPECT_TRUE(arma::approx_equal(*a.at(Stage::output), *b.at(Stage::output), "absdiff", 1e-13));
}

TEST(Renormalize, Gives0Over0WhereALaterScoreTakesTheWholeRow) {
  // Scores 1·1, 1·1000 in row 0: the softmax leaves 0 for the only unmasked key.
  Model m = without_projections(arma::vec{1, 1000});
  m.mask.method = MaskMethod::renormalize;
  const Trace renormalized = attend(m);
  EXPECT_EQ(renormalized.at(Stage::row_sums)(0, 0), 0);
  EXPECT_TRUE(std::isnan(renormalized.at(Stage::weights)(0, 0)));
  m.mask.method = MaskMethod::negative_infinity;
  EXPECT_EQ(attend(m).at(Stage::weights, 0)(0, 0), 1);
}

TEST(Scale, MultipliesTheScoresByItsRule) {
  Model m = six_tokens();
  const arma::mat scores = attend(m).at(Stage::scores, 1);
  const auto scaled = [&](Scale scale) {
    m.scale = scale;
    return attend(m).at(Stage::scaled_scores, 1);
  };
  EXPECT_TRUE(close(scaled({ScaleRule::inverse_sqrt_d_head}), scores / std::sqrt(2.0)));
  EXPECT_TRUE(close(scaled({ScaleRule::inverse_sqrt_d_model}), scores / std::sqrt(3.0)));
  EXPECT_TRUE(same(scaled({ScaleRule::none, 7}), scores));
  EXPECT_TRUE(same(scaled({ScaleRule::factor, -0.5}), scores * -0.5));
}

TEST(UniformScores, AverageTheVisibleTokens) {
  Model m = without_projections({{3, 0}, {5, 2}, {1, 4}});
  m.scores = ScoreRule::uniform;
  EXPECT_TRUE(close(attend(m).at(Stage::output), {{3, 0}, {4, 1}, {3, 2}}));
  m.mask.causal = false;
  EXPECT_TRUE(close(attend(m).at(Stage::output), {{3, 2}, {3, 2}, {3, 2}}));
}

TEST(Projections, WithoutThemQueriesKeysAndValuesAreTheEmbeddings) {
  const Model m = without_projections({{3, 0}, {5, 2}, {1, 4}});
  const Trace t = attend(m);
  for (const StageMatrix* stage : {&t.at(Stage::queries, 0), &t.at(Stage::keys, 0), &t.at(Stage::values, 0)})
    EXPECT_TRUE(same(*stage, m.sequences[0].embeddings));
  EXPECT_EQ(t.at(Stage::scores, 0)(1, 2), 5 * 1 + 2 * 4);
}

TEST(GivenDropoutMask, ScalesSurvivorsAndDropsTheRest) {
  Model m = six_tokens(2);
  m.dropout.rate = 0.2;
  Random random(8);
  for (int k = 0; k < 4; ++k) m.dropout.given.emplace_back(support::zeros_and_ones(random, 6, 6));
  const Trace t = attend(m, 1);
  for (std::size_t h = 0; h < 2; ++h) {
    EXPECT_TRUE(close(t.at(Stage::dropout_mask, h), *m.dropout.given[2 + h] * 1.25));
    EXPECT_TRUE(
        close(t.at(Stage::dropped_weights, h), *t.at(Stage::weights, h) % *m.dropout.given[2 + h] * 1.25));
    EXPECT_TRUE(close(t.at(Stage::contexts, h), *t.at(Stage::dropped_weights, h) * *t.at(Stage::values, h)));
  }
}

TEST(Dropout, ChangesNothingInEvaluation) {
  Model m = six_tokens();
  const Trace expected = attend(m);
  m.dropout.rate = 0.5;
  EXPECT_FALSE(same(attend(m).at(Stage::output), expected.at(Stage::output)));
  m.dropout.training = false;
  EXPECT_TRUE(same(attend(m).at(Stage::output), expected.at(Stage::output)));
}

TEST(Dropout, AtRateOneDropsEverything) {
  Model m = six_tokens();
  m.projections->output.reset();
  m.dropout.rate = 1;
  EXPECT_TRUE(same(attend(m).at(Stage::output), arma::zeros(6, 4)));
}

TEST(Dropout, ScalesTheSurvivorsByOneOverOneMinusTheRate) {
  Model m = six_tokens();
  m.dropout.rate = 0.2;
  for (const arma::mat& mask : sampled_dropout_masks(m, 0)) {
    EXPECT_DOUBLE_EQ(mask.max(), 1.25);
    for (double x : mask) EXPECT_TRUE(x == 0 || x == mask.max()) << x;
  }
}

TEST(Batch, ComputesEachSequenceAsIfAlone) {
  const Model batch = six_tokens(3);
  for (std::size_t s = 0; s < 3; ++s) {
    Model alone = batch;
    alone.sequences = {batch.sequences[s]};
    EXPECT_TRUE(same(attend(batch, s).at(Stage::output), attend(alone).at(Stage::output)));
  }
  EXPECT_FALSE(same(attend(batch, 0).at(Stage::output), attend(batch, 1).at(Stage::output)));
}

TEST(Batch, DrawsDropoutForASequenceAfterTheOnesBeforeIt) {
  // PyTorch draws [sequence][head][query][key] in memory order: the same numbers as one batch of as many
  // heads.
  Model batch = six_tokens(2);
  batch.dropout.rate = 0.5;
  Model alone = batch;
  alone.sequences.resize(1);
  alone.n_heads = 4;
  for (DropoutStream stream : {DropoutStream::mt19937, DropoutStream::mkl}) {
    batch.dropout.stream = alone.dropout.stream = stream;
    const auto drawn = sampled_dropout_masks(alone, 0);
    const auto first = sampled_dropout_masks(batch, 0), second = sampled_dropout_masks(batch, 1);
    EXPECT_TRUE(same(first[0], drawn[0]) && same(first[1], drawn[1]));
    EXPECT_TRUE(same(second[0], drawn[2]) && same(second[1], drawn[3]));
    EXPECT_FALSE(same(first[0], second[0]));
  }
}

TEST(EmptyRow, IsNaNByTheFormulaAndZerosOnRequest) {
  Model m = six_tokens();
  m.mask.cells = {{0, 0, false}};
  const Trace by_formula = attend(m);
  EXPECT_EQ(arma::uvec(arma::find_nan(*by_formula.at(Stage::weights))).n_elem, 6u);
  EXPECT_TRUE(by_formula.at(Stage::weights).row(0).has_nan());
  m.mask.empty_rows = EmptyRows::zeros;
  const Trace zeros = attend(m);
  EXPECT_TRUE(zeros.at(Stage::weights, 0).row(0).is_zero());
  EXPECT_TRUE(zeros.at(Stage::contexts, 0)->row(0).is_zero());
  EXPECT_TRUE(same(zeros.at(Stage::weights, 0)->tail_rows(5), by_formula.at(Stage::weights)->tail_rows(5)));
}

TEST(EmptyRow, IsZeroOnRequestWhereABiasLeavesNoScore) {
  arma::mat bias(6, 6);
  bias(2, arma::span(0, 2)).fill(-INFINITY);  // the causal rule masks the others
  for (const MaskMethod method : {MaskMethod::negative_infinity, MaskMethod::zero_after_softmax}) {
    Model m = six_tokens();
    m.mask.method = method;
    const Trace unbiased = attend(m);
    m.additions.score_bias = {SharedMatrix(bias)};
    const bool is_before = method == MaskMethod::negative_infinity;  // else 0 where masked, and no 0/0
    EXPECT_EQ(attend(m).at(Stage::weights, 0).row(2).has_nan(), is_before);
    m.mask.empty_rows = EmptyRows::zeros;
    const Trace zeros = attend(m);
    EXPECT_TRUE(zeros.at(Stage::weights).row(2).is_zero());
    EXPECT_TRUE(zeros.at(Stage::contexts)->row(2).is_zero());
    EXPECT_TRUE(same(zeros.at(Stage::weights)->tail_rows(3), unbiased.at(Stage::weights)->tail_rows(3)));
    EXPECT_TRUE(same(zeros.at(Stage::weights)->head_rows(2), unbiased.at(Stage::weights)->head_rows(2)));
    fast::Engine engine(1);
    engine.compute(m);
    EXPECT_TRUE(engine.trace().at(Stage::weights, 0).row(2).is_zero());
  }
}

TEST(MaskCells, OverrideTheCausalRule) {
  Model m = six_tokens();
  m.mask.cells = {{0, 5, true}, {3, 1, false}};
  const Trace t = attend(m);
  EXPECT_GT(t.at(Stage::weights, 0)(0, 5), 0);
  EXPECT_EQ(t.at(Stage::weights, 0)(3, 1), 0);
  EXPECT_EQ(t.at(Stage::masked_scores, 0)(3, 1), -INFINITY);
  EXPECT_EQ(arma::accu(*t.at(Stage::mask)), 21);  // 21 of the causal rule, one more, one less
}

TEST(Attend, RefusesAModelOrASequenceThatItCannotCompute) {
  Model m = six_tokens();
  EXPECT_THROW(attend(m, 1), Error);
  m.n_heads = 3;
  EXPECT_THROW(attend(m), Error);
}

}  // namespace
}  // namespace core::attention
