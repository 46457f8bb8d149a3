#include "app/session/picture_source.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "app/session/live_trace.hpp"
#include "core/graph/attend.hpp"
#include "tests/support/random_model.hpp"
#include "tests/support/waiting.hpp"

namespace app {
namespace {

using core::attention::Model;
using core::attention::Stage;

constexpr double always = 1e9;  // milliseconds allowed in the window's thread

Model model_of(std::size_t n_tokens) {
  support::Random random(21);
  Model model = support::model(random, n_tokens, 8, 8, 2);
  model.scores = core::attention::ScoreRule::query_key;
  model.mask = {};
  model.dropout = {};
  return model;
}

Model with_other_number(Model model) {
  arma::mat numbers = model.sequences[0].embeddings;
  numbers(0, 0) += 1;
  model.sequences[0].embeddings = numbers;
  return model;
}

TEST(PictureSource, HasStagesOfASmallTraceReadyAtOnce) {
  Jobs jobs;
  const LiveTrace live(jobs, model_of(12), always);
  PictureSource source(jobs);
  (jobs.finish(), source.follow(live));
  EXPECT_TRUE(source.is_ready(Stage::scores, 1));
  EXPECT_FALSE(source.is_busy());
}

TEST(PictureSource, MakesStagesOfALargeTraceBesideTheWindowAndKnowsTheirExtent) {
  Jobs jobs;
  const LiveTrace live(jobs, model_of(420), always);
  PictureSource source(jobs);
  (jobs.finish(), source.follow(live));
  EXPECT_FALSE(source.is_ready(Stage::scores, 1));
  EXPECT_EQ(source.number_range(Stage::scores, 1), nullptr);
  while (source.is_busy()) (jobs.finish(), source.follow(live));
  EXPECT_TRUE(live.trace().at(Stage::scores, 1).is_materialized());
  EXPECT_FALSE(live.trace().at(Stage::scores, 0).is_materialized());
  EXPECT_TRUE(source.is_ready(Stage::scores, 1));
  const arma::mat scores = core::attention::attend(live.model()).at(Stage::scores, 1);
  ASSERT_NE(source.number_range(Stage::scores, 1), nullptr);
  EXPECT_NEAR(source.number_range(Stage::scores, 1)->largest, scores.max(), 1e-12);
  EXPECT_NEAR(source.number_range(Stage::scores, 1)->smallest, scores.min(), 1e-12);
}

TEST(PictureSource, CountsWhatIsBeyondARangeBesideTheWindow) {
  Jobs jobs;
  const LiveTrace live(jobs, model_of(420), always);
  PictureSource source(jobs);
  (jobs.finish(), source.follow(live));
  const ColorLimits range{-1, 0.5, 0};
  EXPECT_EQ(source.clipped_counts(Stage::scores, 1, range), nullptr);
  const ClippedCounts* cells = nullptr;
  while (!(cells = source.clipped_counts(Stage::scores, 1, range))) (jobs.finish(), source.follow(live));
  const arma::mat scores = core::attention::attend(live.model()).at(Stage::scores, 1);
  EXPECT_EQ(cells->below, arma::accu(scores < -1));
  EXPECT_EQ(cells->above, arma::accu(scores > 0.5));
  EXPECT_EQ(source.clipped_counts(Stage::scores, 1, {-1, 1, 0}), nullptr) << "another range, other cells";
}

TEST(PictureSource, HoldsAKeptTraceAsLongAsItIsRead) {
  const Model model = model_of(420);
  Jobs jobs;
  LiveTrace kept(jobs);
  support::catch_up(jobs, kept, model);
  PictureSource source(jobs);
  (jobs.finish(), source.follow(kept));
  EXPECT_FALSE(source.is_ready(Stage::scores, 1));
  (jobs.finish(), source.follow(kept));  // its computation has begun
  kept.clear();
  source.stop();
  support::catch_up(jobs, kept, model);
  do (jobs.finish(), source.follow(kept));
  while (!source.is_ready(Stage::scores, 1));
  EXPECT_TRUE(kept.trace().at(Stage::scores, 1).is_materialized());
}

TEST(PictureSource, MakesNothingOfATraceThatHasGone) {
  Jobs jobs;
  LiveTrace live(jobs, model_of(420), always);
  PictureSource source(jobs);
  (jobs.finish(), source.follow(live));
  EXPECT_FALSE(source.is_ready(Stage::scores, 1));
  source.stop();
  live.follow(with_other_number(live.model()), 0);
  do (jobs.finish(), source.follow(live));
  while (source.is_busy());
  EXPECT_FALSE(live.trace().at(Stage::scores, 1).is_materialized());
}

TEST(PictureSource, MakesTheMaskAnewOnlyForAnotherMask) {
  Jobs jobs;
  LiveTrace live(jobs, model_of(420), always);
  PictureSource source(jobs);
  const auto visible = [&] {
    do (jobs.finish(), source.follow(live));
    while (!source.visible());
    return source.visible();
  };
  (jobs.finish(), source.follow(live));
  EXPECT_EQ(source.visible(), nullptr) << "not on the window's thread";
  const arma::mat* const before = visible();
  EXPECT_EQ((*before)(3, 4), live.model().mask.causal ? 0 : 1);
  live.follow(with_other_number(live.model()), 0);
  (jobs.finish(), source.follow(live));
  EXPECT_EQ(source.visible(), before);
  EXPECT_FALSE(live.trace().at(Stage::mask).is_materialized());
  Model other = live.model();
  other.mask.causal = !other.mask.causal;
  live.follow(other, 0);
  EXPECT_EQ((*visible())(3, 4), other.mask.causal ? 0 : 1);
}

TEST(ValueRanges, KeepTheLastOneUntilTheNextIsWorkedOut) {
  const Model model = model_of(12);
  const core::attention::Trace trace = core::attention::attend(model);
  ValueRanges extents;
  EXPECT_EQ(extents.last(Stage::scores, 1).largest, 0);
  const double largest = extents.of(trace, 1, Stage::scores, 1).largest;
  extents.of(trace, 2, Stage::queries, 1);
  extents.of(trace, 3, Stage::queries, 1);
  EXPECT_EQ(extents.last(Stage::scores, 1).largest, largest);
  EXPECT_EQ(largest, arma::mat(trace.at(Stage::scores, 1)).max());
}

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

TEST(ValueRange, IsFoundWhereverItsEndsStand) {
  for (const arma::uword n : {1u, 7u, 8u, 9u, 21u}) {
    for (arma::uword at = 0; at < n; ++at) {
      arma::mat m(n, 1, arma::fill::value(2.0));
      m(at) = -3;
      EXPECT_EQ(value_range(m).smallest, -3) << n << " " << at;
      EXPECT_EQ(value_range(m).least, n == 1 ? 3 : 2) << n << " " << at;
      m(at) = 5;
      EXPECT_EQ(value_range(m).largest, 5) << n << " " << at;
      m(at) = -0.25;
      EXPECT_EQ(value_range(m).least, 0.25) << n << " " << at;
    }
  }
}

TEST(ValueRange, LeavesOutWhatIsNotFiniteAndZerosOfTheLeast) {
  const arma::mat m{{nan, 4.0, -infinity, 0.0, 1.5, infinity, -0.0, 2.0, nan, -infinity}};
  const ValueRange e = value_range(m);
  EXPECT_EQ(e.smallest, 0);
  EXPECT_EQ(e.largest, 4);
  EXPECT_EQ(e.least, 1.5);
}

TEST(ValueRange, OfNothingFiniteIsZero) {
  for (const double v : {nan, infinity, -infinity}) {
    const ValueRange e = value_range(arma::mat(3, 4, arma::fill::value(v)));
    EXPECT_EQ(e.smallest, 0);
    EXPECT_EQ(e.largest, 0);
    EXPECT_EQ(e.least, 0);
  }
  EXPECT_EQ(value_range(arma::mat()).largest, 0);
}

}  // namespace
}  // namespace app
