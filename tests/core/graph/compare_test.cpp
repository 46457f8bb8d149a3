#include "core/graph/compare.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "core/graph/attend.hpp"
#include "tests/support/first_difference.hpp"

namespace core::compare {
namespace {

using namespace core::attention;

/// Returns a model with Q = K = V = X, one head and no scale, so that numbers can be checked by hand.
Model bare(arma::mat x) {
  Model m;
  m.sequences.push_back({numbered_tokens(x.n_rows), std::move(x)});
  m.scale.rule = ScaleRule::none;
  return m;
}

std::vector<StageDifference> compared(const Model& a, const Model& b) {
  return compare(a, attend(a), b, attend(b));
}

StageDifference of(const std::vector<StageDifference>& all, Stage stage) {
  for (const StageDifference& s : all)
    if (s.stage == stage) return s;
  throw std::out_of_range(info(stage).name);
}

const arma::mat x{{1, 0}, {0, 2}};

TEST(Compare, FindsNothingBetweenAModelAndItself) {
  const auto all = compared(bare(x), bare(x));
  EXPECT_FALSE(all.empty());
  EXPECT_EQ(support::first_difference(all), nullptr);
}

TEST(Compare, MeasuresEachStageAndSaysWhere) {
  const auto all = compared(bare(x), bare({{1, 0}, {0, 3}}));
  ASSERT_NE(support::first_difference(all), nullptr);
  EXPECT_EQ(support::first_difference(all)->stage, Stage::embeddings);
  EXPECT_EQ(of(all, Stage::embeddings).largest, 1);
  EXPECT_EQ(of(all, Stage::embeddings).row, 1u);
  EXPECT_EQ(of(all, Stage::embeddings).column, 1u);
  EXPECT_EQ(of(all, Stage::scores).largest, 5);  // 2·2 against 3·3
  EXPECT_FALSE(of(all, Stage::mask).differs());
}

TEST(Compare, NamesTheScaledScoresFirstWhenOnlyTheScaleDiffers) {
  Model halved = bare(x);
  halved.scale = {ScaleRule::factor, 0.5};
  const auto all = compared(bare(x), halved);
  EXPECT_EQ(support::first_difference(all)->stage, Stage::scaled_scores);
  EXPECT_EQ(of(all, Stage::scaled_scores).largest, 2);  // 4 against 2
  EXPECT_FALSE(of(all, Stage::scores).differs());
}

TEST(Compare, AllowsRoundingOfTheLargestNumberOfAllHeadsOfBoth) {
  Model two = bare({{1, 4}, {2, 8}});
  two.n_heads = 2;
  Model other = two;
  const auto& queries = info(Stage::queries);
  other.sequences[0].embeddings = arma::mat{{1 + 0x1p-20, 4}, {2, 8}};  // of head 0; the largest is in head 1
  const Trace a = attend(two), b = attend(other);
  EXPECT_TRUE(compare_stage(queries, a, b).differs());
  EXPECT_EQ(compare_stage(queries, a, b, 0x1p-23).allowed, 8 * 0x1p-23);
  EXPECT_FALSE(compare_stage(queries, a, b, 0x1p-23).differs()) << "2⁻²⁰ is allowed, and no more";
  EXPECT_EQ(compare_stage(queries, a, b, 0x1p-23).largest, 0x1p-20);
  EXPECT_TRUE(compare_stage(queries, a, b, 0x1p-24).differs());
}

TEST(Compare, AllowsNoRoundingWhereNothingIsComputed) {
  Model given = bare(x), other = bare({{1, 0}, {0, 2 + 0x1p-40}});
  const auto all = compare(given, attend(given), other, attend(other), 1e-3);
  for (const Stage copied : {Stage::embeddings, Stage::queries, Stage::keys, Stage::values})
    EXPECT_TRUE(of(all, copied).differs()) << info(copied).name;
  EXPECT_FALSE(of(all, Stage::scores).differs());
  EXPECT_GT(of(all, Stage::scores).largest, 0);
  EXPECT_EQ(of(all, Stage::mask).allowed, 0);
}

TEST(Compare, CallsAHiddenScoreInfinitelyFarFromAVisibleOne) {
  Model open = bare(x);
  open.mask.causal = false;
  const auto all = compared(bare(x), open);
  EXPECT_EQ(support::first_difference(all)->stage, Stage::mask);
  const StageDifference masked = of(all, Stage::masked_scores);
  EXPECT_EQ(masked.largest, std::numeric_limits<double>::infinity());
  EXPECT_EQ(masked.row, 0u);
  EXPECT_EQ(masked.column, 1u);
}

TEST(Compare, FindsTheHeadThatDiffersMost) {
  Model two = bare({{1, 2}, {3, 4}});
  two.n_heads = 2;
  Model other = two;
  other.sequences[0].embeddings = arma::mat{{1.25, 2}, {3, 5}};
  const StageDifference queries = of(compared(two, other), Stage::queries);
  EXPECT_EQ(queries.largest, 1);
  EXPECT_EQ(queries.head, 1u);
  EXPECT_EQ(queries.row, 1u);
  EXPECT_EQ(queries.column, 0u);
}

TEST(Compare, SaysWhichShapesDoNotFit) {
  Model two = bare({{1, 2, 3, 4}, {1, 1, 1, 1}}), three = bare({{1, 2, 3, 4}, {1, 1, 1, 1}, {0, 0, 0, 0}});
  two.n_heads = 2;
  const auto all = compared(two, three);
  EXPECT_EQ(of(all, Stage::embeddings).obstacle, "A is 2×4, B is 3×4");
  EXPECT_EQ(of(all, Stage::queries).obstacle, "A is 2 heads of 2×2, B is 1 head of 3×4");
  EXPECT_EQ(of(all, Stage::output).largest, 0);
  EXPECT_TRUE(of(all, Stage::output).differs());
}

TEST(Compare, NamesStagesThatOnlyOneOfThemHas) {
  Model after = bare(x);
  after.mask.method = MaskMethod::renormalize;
  const StageDifference sums = of(compared(after, bare(x)), Stage::row_sums);
  EXPECT_TRUE(sums.in_a);
  EXPECT_FALSE(sums.in_b);
  EXPECT_EQ(sums.obstacle, "only A has this stage");
  EXPECT_EQ(of(compared(bare(x), after), Stage::row_sums).obstacle, "only B has this stage");
}

}  // namespace
}  // namespace core::compare
