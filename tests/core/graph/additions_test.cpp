#include "core/graph/additions.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "core/graph/attend.hpp"
#include "core/graph/validation.hpp"
#include "tests/support/random_model.hpp"

namespace core::attention {
namespace {

Model four_heads() {
  support::Random random(31);
  return support::model(random, 5, 6, 16, 4);
}

/// Returns the problem that check() finds after a change, as "path: message".
std::string said_of(const std::function<void(Model&)>& change) {
  Model m = four_heads();
  change(m);
  const auto problem = check(m);
  return problem ? problem->path + ": " + problem->message : "";
}

SharedMatrix ones(std::size_t rows, std::size_t columns) {
  return arma::mat(rows, columns, arma::fill::ones);
}

/// One token, two heads of one column each: 3 and 4.
TEST(QkNorm, OverAllHeadsDividesByTheMeanOfAllColumns) {
  Model m;
  m.sequences.resize(1);
  m.sequences.front().tokens = {"a"};
  m.sequences.front().embeddings = arma::mat{{3, 4}};
  m.n_heads = 2;
  m.additions.normalize =
      QueryKeyNorm{NormRule::rms, arma::mat{{2, 10}}, ones(1, 2), 0, NormScope::all_heads};
  const Trace all = attend(m);
  const double root = std::sqrt(12.5);
  EXPECT_NEAR(all.at(Stage::normed_queries, 0)(0, 0), 2 * 3 / root, 1e-15);
  EXPECT_NEAR(all.at(Stage::normed_queries, 1)(0, 0), 10 * 4 / root, 1e-15);
  EXPECT_NEAR(all.at(Stage::normed_keys, 1)(0, 0), 4 / root, 1e-15);
  m.additions.normalize->over = NormScope::own_head;
  const Trace own = attend(m);
  EXPECT_NEAR(own.at(Stage::normed_queries, 0)(0, 0), 2, 1e-15);
  EXPECT_NEAR(own.at(Stage::normed_queries, 1)(0, 0), 10, 1e-15);
  m.additions.normalize->over = NormScope::all_heads, m.additions.normalize->rule = NormRule::layer;
  EXPECT_NEAR(attend(m).at(Stage::normed_queries, 0)(0, 0), -2, 1e-15) << "(3 − 3.5) / 0.5 · 2";
}

TEST(Additions, NameWhatDoesNotFit) {
  EXPECT_EQ(said_of([](Model& m) { m.n_kv_heads = 3; }),
            "n_kv_heads: expected a number that divides n_heads = 4, got 3");
  EXPECT_EQ(said_of([](Model& m) { m.n_kv_heads = 2; }),
            "projections.key.weight: expected 6×8 (d_in × n_kv_heads·d_head), got 6×16");
  EXPECT_EQ(said_of([](Model& m) {
              m.additions.normalize = QueryKeyNorm{NormRule::rms, ones(1, 4), ones(1, 3)};
            }),
            "normalise.key: expected 1×4 (one number for each column of a head), got 1×3");
  EXPECT_EQ(said_of([](Model& m) {
              m.additions.normalize = QueryKeyNorm{NormRule::rms, ones(1, 4), ones(1, 4), -1};
            }),
            "normalise.epsilon: expected a finite number that is not negative");
  EXPECT_EQ(said_of([](Model& m) {
              m.additions.normalize = QueryKeyNorm{NormRule::rms, ones(1, 4), ones(1, 4)};
              m.additions.normalize->over = NormScope::all_heads;
            }),
            "normalise.query: expected 1×16 (one number for each column of all heads), got 1×4");
  const auto scaled = [](auto change) {
    return said_of([&](Model& m) { change(m.additions.positions.rotary.emplace().scaling); });
  };
  using positions::Scaling, positions::ScalingRule;
  const std::string scaling = "positions.rotary.scaling.";
  EXPECT_EQ(scaled([](Scaling& s) { s.rule = ScalingRule::yarn, s.high = 1; }),
            scaling + "beta_fast: expected a finite number above beta_slow");
  EXPECT_EQ(scaled([](Scaling& s) { s.rule = ScalingRule::yarn, s.attention = 0; }),
            scaling + "attention_factor: expected a finite number above 0");
  EXPECT_EQ(scaled([](Scaling& s) { s.rule = ScalingRule::dynamic, s.factor = 0.5; }),
            scaling + "factor: expected a number of at least 1");
  EXPECT_EQ(scaled([](Scaling& s) { s.rule = ScalingRule::longrope, s.factors = ones(2, 1); }),
            scaling + "short_factor: expected a factor for each of 2 pairs, got 1");
  EXPECT_EQ(scaled([](Scaling& s) {
              s.rule = ScalingRule::longrope, s.factors = arma::mat{{1, 1}, {1, 0}};
            }),
            scaling + "long_factor[1]: expected a finite number above 0");
  EXPECT_EQ(said_of([](Model& m) { m.additions.positions.rotary.emplace().dimensions = 3; }),
            "positions.rotary.dimensions: expected an even number from 2 to d_head = 4, got 3");
  EXPECT_EQ(said_of([](Model& m) { m.additions.positions.rotary.emplace().base = 0; }),
            "positions.rotary.base: expected a finite number above 0");
  EXPECT_EQ(
      said_of([](Model& m) { m.additions.positions.rotary.emplace().inverse_frequencies = ones(1, 3); }),
      "positions.rotary.inverse_frequencies: expected 1×2 (one number for each pair), got 1×3");
  EXPECT_EQ(said_of([](Model& m) {
              m.additions.positions.alibi.emplace();
              m.additions.positions.relative.emplace();
            }),
            "positions: expected one of \"alibi\" and \"relative\", got both");
  EXPECT_EQ(said_of([](Model& m) { m.additions.positions.relative = positions::Relative{ones(4, 7)}; }),
            "positions.relative.table: expected an even number of buckets, at least 4, got 7");
  EXPECT_EQ(said_of([](Model& m) {
              m.additions.positions.relative = positions::Relative{ones(4, 8), 2};
            }),
            "positions.relative.max_distance: expected more than 2, got 2");
  EXPECT_EQ(said_of([](Model& m) { m.additions.softcap = -1; }),
            "score_cap: expected a finite number above 0");
  EXPECT_EQ(said_of([](Model& m) {
              m.additions.score_bias = {ones(5, 5), ones(5, 5)};
            }),
            "score_bias: expected one matrix, or 4, one for each head, got 2");
  EXPECT_EQ(said_of([](Model& m) {
              m.additions.score_bias = {ones(5, 5)};
              m.additions.score_bias[0].edit()(2, 3) = arma::datum::inf;
            }),
            "score_bias[2][3]: expected a finite number or −inf");
  EXPECT_EQ(said_of([](Model& m) { m.additions.sink = ones(1, 3); }),
            "sink: expected 1×4 (one number for each head), got 1×3");
  EXPECT_EQ(said_of([](Model& m) { m.sequences[0].key_embeddings = ones(7, 6); }),
            "key_tokens: expected 7 tokens, one for each key, got 0");
}

TEST(Additions, AMinusInfiniteBiasHidesAsAMaskDoes) {
  Model masked = four_heads(), biased = masked;
  biased.mask.causal = false;
  arma::mat triangle(5, 5, arma::fill::zeros);
  for (std::size_t i = 0; i < 5; ++i)
    for (std::size_t j = i + 1; j < 5; ++j) triangle(i, j) = -arma::datum::inf;
  biased.additions.score_bias = {triangle};
  EXPECT_TRUE(arma::approx_equal(*attend(masked).at(Stage::output), *attend(biased).at(Stage::output),
                                 "absdiff", 1e-14));
}

TEST(Additions, HeadsOfAGroupWithTheirOwnCopiesAreTheSame) {
  Model grouped = four_heads();
  grouped.n_kv_heads = 2;
  for (Linear* linear : {&grouped.projections->key, &grouped.projections->value}) {
    linear->weight = arma::mat(linear->weight->head_cols(8));
    if (linear->bias) linear->bias = arma::mat((*linear->bias)->head_cols(8));
  }
  Model repeated = grouped;
  repeated.n_kv_heads.reset();
  const auto twice = [](const arma::mat& m) {
    return arma::mat(arma::join_rows(arma::join_rows(m.cols(0, 3), m.cols(0, 3)),
                                     arma::join_rows(m.cols(4, 7), m.cols(4, 7))));
  };
  for (Linear* linear : {&repeated.projections->key, &repeated.projections->value}) {
    linear->weight = twice(linear->weight);
    if (linear->bias) linear->bias = twice(*linear->bias);
  }
  EXPECT_TRUE(arma::approx_equal(*attend(grouped).at(Stage::output), *attend(repeated).at(Stage::output),
                                 "absdiff", 1e-14));
}

TEST(Additions, ASinkOfMinusInfinityWouldBeNoneAndAGreatOneTakesAll) {
  Model m = four_heads();
  m.additions.sink = ones(1, 4);
  m.additions.sink->edit().fill(-800);
  Model none = four_heads();
  EXPECT_TRUE(
      arma::approx_equal(*attend(m).at(Stage::output), *attend(none).at(Stage::output), "absdiff", 1e-15));
  m.additions.sink->edit().fill(800);
  EXPECT_TRUE(attend(m).at(Stage::weights, 0)->is_zero());
}

}  // namespace
}  // namespace core::attention
