#include "core/graph/statistics.hpp"

#include <gmock/gmock.h>

#include <cmath>

#include "core/editing/presets.hpp"
#include "core/graph/attend.hpp"

namespace core::attention {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::Optional;
using Words = std::vector<std::string>;

constexpr double near_enough = 1e-12;

auto is(double value) {
  return Optional(DoubleNear(value, near_enough));
}

HeadStatistics facts_of_preset(const char* name) {
  const Model model = editing::find_preset(name)->make();
  return head_statistics(attend(model).at(Stage::weights, 0), model.sequences[0].tokens);
}

Trace heads_of(std::vector<arma::mat> weights) {
  Trace trace(weights.size());
  for (std::size_t h = 0; h < weights.size(); ++h) trace.at(Stage::weights, h) = std::move(weights[h]);
  return trace;
}

TEST(HeadStatistics, AreMeansOverTheRowsThatHaveSuchAKey) {
  const arma::mat weights{{1, 0, 0, 0}, {0.5, 0.5, 0, 0}, {0.25, 0.25, 0.5, 0}, {0.25, 0.25, 0.25, 0.25}};
  const HeadStatistics facts = head_statistics(weights, Words{"the", "cat", "the", "the"});
  EXPECT_THAT(facts.entropy_bits, is((0 + 1 + 1.5 + 2) / 4));
  EXPECT_THAT(facts.itself, is((1 + 0.5 + 0.5 + 0.25) / 4));
  EXPECT_THAT(facts.previous, is((0.5 + 0.25 + 0.25) / 3));
  EXPECT_THAT(facts.two_or_three_back, is((0.25 + (0.25 + 0.25)) / 2));
  EXPECT_THAT(facts.first, is((0.5 + 0.25 + 0.25) / 3));
  EXPECT_THAT(facts.same_word, is((0.25 + (0.25 + 0.25)) / 2)) << "row 2 sees one earlier the, row 3 two";
}

TEST(HeadStatistics, LeaveOutRowsThatAreNoDistribution) {
  const double nan = arma::datum::nan;
  const arma::mat weights{{nan, nan, nan}, {1, 0, 0}, {0, 0, 0}};
  const HeadStatistics facts = head_statistics(weights, Words{"a", "b", "c"});
  EXPECT_THAT(facts.entropy_bits, is(0));
  EXPECT_THAT(facts.previous, is(1));
  EXPECT_THAT(facts.itself, is(0));
  EXPECT_EQ(facts.two_or_three_back, std::nullopt);
}

TEST(HeadStatistics, OfOneTokenSayNothingOfTokensBefore) {
  const HeadStatistics facts = head_statistics(arma::mat(1, 1, arma::fill::ones), Words{"alone"});
  EXPECT_THAT(facts.itself, is(1));
  EXPECT_EQ(facts.previous, std::nullopt);
  EXPECT_EQ(facts.first, std::nullopt);
  EXPECT_EQ(facts.same_word, std::nullopt);
}

TEST(HeadStatistics, TakeTheEntropyOfRowsThatDoNotSumToOneAfterDividingThem) {
  const HeadStatistics facts = head_statistics(arma::mat{{0.25, 0.25}, {0.25, 0.25}}, Words{"a", "b"});
  EXPECT_THAT(facts.entropy_bits, is(1));
  EXPECT_THAT(facts.itself, is(0.25)) << "weights themselves stay as they are";
}

// A match of the hand-built heads outweighs everything else by e^10.
TEST(HeadStatistics, RecognizeHeadsThatWereBuiltForIt) {
  EXPECT_NEAR(*facts_of_preset("head-previous-token").previous, 1, 1e-3);
  EXPECT_NEAR(*facts_of_preset("head-first-token").first, 1, 1e-3);
  EXPECT_LT(*facts_of_preset("head-first-token").previous, 0.3);
}

TEST(HeadFigures, AreFoundByTheirNames) {
  for (const HeadMetricInfo& row : head_metrics()) {
    EXPECT_EQ(find_head_metric(row.name), &row);
    EXPECT_EQ(&info(row.figure), &row);
  }
  EXPECT_EQ(find_head_metric("likeness"), nullptr);
}

TEST(HeadFigures, SortHeadsWithThoseWithoutAFigureLast) {
  std::vector<HeadStatistics> facts(4);
  facts[0].previous = 0.2, facts[1].previous = 0.9, facts[3].previous = 0.2;
  facts[0].entropy_bits = 2, facts[1].entropy_bits = 3, facts[2].entropy_bits = 1, facts[3].entropy_bits = 2;
  EXPECT_THAT(sort_heads(HeadMetric::previous, facts), ElementsAre(1, 0, 3, 2));
  EXPECT_THAT(sort_heads(HeadMetric::entropy, facts), ElementsAre(2, 0, 3, 1));
}

TEST(HeadLikeness, IsOneForTheSameWeightsAndZeroForNoneInCommon) {
  const arma::mat to_first{{1, 0}, {1, 0}}, to_second{{0, 1}, {0, 1}};
  const arma::mat all = head_similarity(heads_of({to_first, to_second, to_first}));
  EXPECT_EQ(all(0, 0), 1);
  EXPECT_EQ(all(0, 2), 1);
  EXPECT_EQ(all(0, 1), 0);
  EXPECT_EQ(all(1, 0), 0);
}

TEST(HeadLikeness, IsTheMeanOverTheRowsThatAreDistributionsInBoth) {
  const double nan = arma::datum::nan;
  const arma::mat a{{1, 0}, {1, 0}, {nan, nan}}, b{{0.5, 0.5}, {1, 0}, {1, 0}};
  // Row 0: the entropy of the mean (3/4, 1/4) minus half of 0 + 1 bit; row 1 is equal.
  const double middle = -(0.75 * std::log2(0.75) + 0.25 * std::log2(0.25));
  EXPECT_NEAR(head_similarity(heads_of({a, b}))(0, 1), 1 - (middle - 0.5) / 2, near_enough);
}

TEST(HeadLikeness, IsNoNumberWhereNoRowCanBeCompared) {
  const arma::mat lost(1, 1, arma::fill::value(arma::datum::nan));
  EXPECT_TRUE(std::isnan(head_similarity(heads_of({lost, arma::mat(1, 1, arma::fill::ones)}))(0, 1)));
}

}  // namespace
}  // namespace core::attention
