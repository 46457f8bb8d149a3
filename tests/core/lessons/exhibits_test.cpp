#include "core/lessons/exhibits.hpp"
#include "core/editing/presets.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "core/graph/attend.hpp"
#include "core/lessons/expression.hpp"
#include "core/lessons/lessons.hpp"
#include "tests/core/lessons/tried.hpp"
#include "tests/support/json_fixture.hpp"
#include "tests/support/matchers.hpp"

namespace core::lessons {
namespace {

using attention::Model;

std::vector<ExhibitPicture> pictures_of(Exhibit exhibit, const Model& model) {
  const attention::Trace trace = attention::attend(model);
  return pictures(exhibit, StepState{model, trace, model, trace});
}

Model preset(const char* name) {
  return editing::find_preset(name)->make();
}

TEST(LibraryPicture, ShowsTheAnalogysBooksAndWeights) {
  const support::TextDemo demo = support::read_text_demo("s002_library");
  const auto p = pictures_of(Exhibit::library, preset("002-library"));
  ASSERT_EQ(p.size(), 1u);
  EXPECT_EQ(p[0].title, demo.query);
  EXPECT_EQ(p[0].rows, demo.keys);
  for (std::size_t k = 0; k < demo.weights.size(); ++k)
    EXPECT_NEAR(p[0].numbers(k, 0), demo.weights[k], 1e-15);
}

TEST(SingleQueryPicture, AddsUpToTheNotebooksDotProducts) {
  const support::Walkthrough walk = support::read_walkthrough("s001_raw_dot_product");
  ASSERT_EQ(walk.query, 1u);
  const auto p = pictures_of(Exhibit::single_query, preset("001-dot-product"));
  ASSERT_EQ(p.size(), 2u);
  EXPECT_TRUE(support::is_near(p[1].numbers.t(), walk.scores.matrix(), walk.scores.absolute));
  EXPECT_TRUE(arma::approx_equal(arma::sum(p[0].numbers, 1).eval(), p[1].numbers, "absdiff", 0));
  for (std::size_t k = 0; k < 6; ++k) EXPECT_NEAR(p[1].numbers(k, 0), walk.printed_scores[k], 5.1e-5);
}

TEST(DoubleLoopPicture, HoldsTheSameNumbersTwice) {
  const auto p = pictures_of(Exhibit::double_loop, preset("001-dot-product"));
  ASSERT_EQ(p.size(), 2u);
  EXPECT_LT(largest_difference(p[0].numbers, p[1].numbers), 1e-15);
  const support::Fixture fixture = support::read_fixture("s001_raw_dot_product");
  EXPECT_TRUE(support::is_near(p[0].numbers, fixture.tensors.at("scores").matrix({0, 0}), 1e-12));
}

TEST(VersionsPicture, ShowsTwoEqualMatricesAndAThird) {
  const auto p = pictures_of(Exhibit::versions, preset("002-full"));
  ASSERT_EQ(p.size(), 3u);
  EXPECT_TRUE(agree(p[0].numbers, p[1].numbers));
  EXPECT_GT(largest_difference(p[0].numbers, p[2].numbers), 0.1);
  EXPECT_TRUE(support::is_near(
      p[0].numbers, support::read_fixture("s002_v1_uniform").tensors.at("weights").matrix(), 1e-12));
  EXPECT_TRUE(support::is_near(p[2].numbers,
                               support::read_fixture("s002_qkv").tensors.at("weights").matrix({0, 0}), 1e-9));
}

TEST(MaskMethodsPicture, PartsWhereTheHiddenScoreIsFarAbove) {
  const auto agreeing = pictures_of(Exhibit::mask_methods, preset("004-renormalise"));
  EXPECT_TRUE(agree(agreeing[0].numbers, agreeing[1].numbers));
  const auto parting = pictures_of(Exhibit::mask_methods, model_at_start(find_lesson("004")->steps[4]));
  EXPECT_TRUE(parting[0].numbers.is_finite());
  EXPECT_TRUE(std::isnan(parting[1].numbers(0, 0)));
  EXPECT_EQ(parting[1].note, "0/0: nothing is left to divide by");
  // exp() of float64 underflows just beyond the lesson's 744.4.
  EXPECT_GT(std::exp(-744.4), 0);
  EXPECT_EQ(std::exp(-745.2), 0);
}

TEST(EntropyPicture, IsLowerWithoutScaling) {
  const auto p = pictures_of(Exhibit::entropy, preset("002-full"));
  ASSERT_EQ(p.size(), 1u);
  const arma::mat& bits = p[0].numbers;
  EXPECT_LT(arma::mean(bits.col(1)), arma::mean(bits.col(0)));
  for (std::size_t i = 0; i < bits.n_rows; ++i) {
    EXPECT_DOUBLE_EQ(bits(i, 2), std::log2(static_cast<double>(i + 1)));
    EXPECT_LE(bits(i, 0), bits(i, 2) + 1e-12);
  }
}

TEST(RowsMovedByTheLastToken, AreRowsZeroToTwoTooWhenTheTransposeIsForgotten) {
  const auto p = pictures_of(Exhibit::moved_rows, preset("001-multi-head-as-written"));
  const arma::mat& moved = p[0].numbers;  // concatenated, reshaped
  ASSERT_EQ(moved.n_rows, 4u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(moved(i, 0), 0) << i;
    EXPECT_GT(moved(i, 1), 0.01) << i;
  }
  EXPECT_GT(moved(3, 0), 0.01);
}

TEST(NextTokenPicture, NamesWhatIsToBeGuessedAfterEachRow) {
  const auto p = pictures_of(Exhibit::next_token, model_at_start(find_lesson("001-heads")->steps.front()));
  EXPECT_EQ(p[0].ends, (std::vector<std::string>{"→ going", "→ to", "→ school", "→ tomorrow", "→ ?"}));
  EXPECT_EQ(arma::accu(p[0].numbers), 15);
  EXPECT_EQ(p[0].note, "4 pairs to learn from");
}

}  // namespace
}  // namespace core::lessons
