#include <gtest/gtest.h>

#include <cmath>

#include "core/graph/attend.hpp"
#include "core/graph/rounding.hpp"
#include "core/graph/stages.hpp"
#include "core/graph/visible.hpp"
#include "tests/support/random_model.hpp"

namespace core::attention {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Three tokens, two heads of two columns.
struct Departing : testing::Test {
  support::Random random{21};
  Model model = support::model(random, 3, 3, 4, 2);
  Departures& departures = model.departures;

  /// Half of the weights are dropped, in head 0 by this mask, in head 1 none.
  void drop_by(const arma::mat& mask) {
    model.dropout.rate = 0.5;
    model.dropout.given = {mask, arma::mat(3, 3, arma::fill::ones)};
  }
};

TEST_F(Departing, SoftmaxOverQueriesMakesColumnsSumToOne) {
  model.mask.causal = false;
  departures.softmax_over = SoftmaxOver::queries;
  const Trace trace = attend(model);
  const arma::mat e = arma::exp(arma::mat(trace.heads[1].scaled_scores));
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j)
      EXPECT_NEAR(trace.heads[1].weights(i, j), e(i, j) / (e(0, j) + e(1, j) + e(2, j)), 1e-15);
}

TEST_F(Departing, SwappedScoresAreTheTransposedOnes) {
  const arma::mat before = attend(model).heads[0].scores;
  departures.scores_swapped = true;
  EXPECT_TRUE(arma::approx_equal(arma::mat(attend(model).heads[0].scores), before.t(), "absdiff", 1e-15));
}

TEST(CausalMask, ShowsEachQueryItselfAndEarlierKeys) {
  support::Random random{23};
  const Model model = support::model(random, 3, 3, 4, 2);
  EXPECT_TRUE(
      arma::approx_equal(visible_cells(model, 0), arma::mat{{1, 0, 0}, {1, 1, 0}, {1, 1, 1}}, "absdiff", 0));
}

TEST_F(Departing, DiagonalMovesTheEdgeOfTheCausalMask) {
  departures.mask_edge.diagonal = 1;
  EXPECT_TRUE(arma::approx_equal(visible_cells(model, 0), arma::mat("1 1 0; 1 1 1; 1 1 1"), "absdiff", 0));
  departures.mask_edge.diagonal = -1;
  EXPECT_TRUE(arma::approx_equal(visible_cells(model, 0), arma::mat("0 0 0; 1 0 0; 1 1 0"), "absdiff", 0));
}

TEST_F(Departing, TransposedMaskShowsWhatComesAfter) {
  departures.mask_edge.transposed = true;
  departures.mask_edge.diagonal = 1;
  EXPECT_TRUE(arma::approx_equal(visible_cells(model, 0), arma::mat("1 1 1; 1 1 1; 0 1 1"), "absdiff", 0));
  model.mask.cells = {{0, 0, false}};
  EXPECT_EQ(visible_cells(model, 0)(0, 0), 0);
}

TEST_F(Departing, RuleAndMaskSayTheSame) {
  for (int diagonal = -3; diagonal <= 3; ++diagonal)
    for (const bool transposed : {false, true}) {
      departures.mask_edge.diagonal = diagonal;
      departures.mask_edge.transposed = transposed;
      const arma::mat visible = visible_cells(model, 0);
      for (std::size_t i = 0; i < 3; ++i)
        for (std::size_t j = 0; j < 3; ++j)
          EXPECT_EQ(visible(i, j) == 1, sight_by_rules(model, 0, i, j).visible);
    }
}

TEST_F(Departing, LargeNegativeIsWhatHiddenCellsHold) {
  model.mask.method = MaskMethod::large_negative;
  departures.large_negative = -1e4;
  EXPECT_EQ(attend(model).heads[0].masked_scores(0, 2), -1e4);
}

TEST_F(Departing, DroppedScoreBeforeTheMaskIsZeroAndNotHidden) {
  drop_by(arma::mat("0 1 1; 1 0 1; 1 1 1"));
  departures.dropout_place = DropoutPlace::scaled_scores;
  const Trace trace = attend(model);
  const arma::mat s = trace.heads[0].scaled_scores, m = trace.heads[0].masked_scores,
                  w = trace.heads[0].weights;
  EXPECT_EQ(m(1, 0), 2 * s(1, 0));
  EXPECT_EQ(m(1, 1), 0);
  EXPECT_EQ(m(1, 2), -infinity);
  EXPECT_NEAR(w(1, 0), std::exp(2 * s(1, 0)) / (std::exp(2 * s(1, 0)) + 1), 1e-15);
  EXPECT_TRUE(arma::approx_equal(arma::mat(trace.heads[0].dropped_weights), w, "absdiff", 0));
}

TEST_F(Departing, DroppedMinusInfinityIsNaN) {
  drop_by(arma::mat("1 1 0; 1 1 1; 1 1 1"));
  departures.dropout_place = DropoutPlace::masked_scores;
  const Trace trace = attend(model);
  EXPECT_TRUE(std::isnan(trace.heads[0].weights(0, 0)));
  const arma::mat s = trace.heads[0].scaled_scores;
  EXPECT_NEAR(trace.heads[0].weights(1, 0), 1 / (1 + std::exp(2 * (s(1, 1) - s(1, 0)))), 1e-15);
}

TEST_F(Departing, DropoutThatDoesNotRescaleKeepsWeights) {
  drop_by(arma::mat("1 1 1; 0 1 1; 1 1 1"));
  model.dropout.rescale = false;
  const Trace trace = attend(model);
  EXPECT_EQ(trace.heads[0].dropped_weights(1, 0), 0);
  EXPECT_EQ(trace.heads[0].dropped_weights(2, 1), trace.heads[0].weights(2, 1));
}

TEST_F(Departing, InterleavedHeadOwnsEveryNthColumn) {
  departures.split = HeadColumns::interleaved;
  const arma::mat q = *model.sequences[0].embeddings * *model.projections->query.weight;
  const arma::mat queries = attend(model).heads[1].queries;
  EXPECT_TRUE(arma::approx_equal(queries, arma::mat(arma::join_rows(q.col(1), q.col(3))), "absdiff", 0));
}

TEST_F(Departing, InterleavedMergeTakesAColumnOfEachHeadInTurn) {
  departures.merge = HeadColumns::interleaved;
  const Trace trace = attend(model);
  const arma::mat all = trace.concatenated;
  for (std::size_t c = 0; c < 4; ++c) EXPECT_EQ(all(2, c), trace.heads[c % 2].contexts(2, c / 2)) << c;
}

TEST_F(Departing, EveryComputedStageOfAPrecisionIsOnItsGrid) {
  for (const Precision precision : {Precision::float32, Precision::float16, Precision::bfloat16}) {
    departures.precision = precision;
    const Trace trace = attend(model);
    const auto on_grid = [&](const arma::mat& m) {
      return arma::all(arma::vectorise(m == rounded(precision, m)));
    };
    for (const HeadTrace& head : trace.heads)
      EXPECT_TRUE(on_grid(head.queries) && on_grid(head.scores) && on_grid(head.scaled_scores) &&
                  on_grid(head.weights) && on_grid(head.contexts));
    EXPECT_TRUE(on_grid(trace.output));
  }
}

TEST(Rounding, GivesTheNumbersThatIeeeNames) {
  EXPECT_EQ(rounded(Precision::float16, 0.1), 0x1.998p-4);
  EXPECT_EQ(rounded(Precision::float16, 65519.9), 65504);
  EXPECT_EQ(rounded(Precision::float16, 65520), infinity);
  EXPECT_EQ(rounded(Precision::float16, -1e9), -infinity);
  EXPECT_EQ(rounded(Precision::float16, 0x1p-24), 0x1p-24);  // the smallest subnormal
  EXPECT_EQ(rounded(Precision::float16, 0x1p-25), 0);        // a tie, to even
  EXPECT_EQ(rounded(Precision::float16, 2049), 2048);        // a tie, to even
  EXPECT_EQ(rounded(Precision::float16, 2051), 2052);
  EXPECT_EQ(rounded(Precision::bfloat16, 1e9), 998244352);
  EXPECT_EQ(rounded(Precision::bfloat16, 3.14159265), 3.140625);
  EXPECT_EQ(rounded(Precision::float64, 0.1), 0.1);
}

TEST(Rounding, ToFloat32IsWhatTheProcessorDoes) {
  support::Random random(22);
  for (int k = 0; k < 1000; ++k) {
    const double x = std::ldexp(support::number(random), static_cast<int>(support::below(random, 320)) - 160);
    EXPECT_EQ(rounded(Precision::float32, x), static_cast<double>(static_cast<float>(x))) << x;
  }
}

}  // namespace
}  // namespace core::attention
