#include <gtest/gtest.h>

#include "core/editing/presets.hpp"
#include "core/graph/attend.hpp"
#include "tests/support/matchers.hpp"

/// The numbers that chapter 3 of "Build a Large Language Model (From Scratch)" prints, to four decimals.
namespace golden {
namespace {

using core::attention::Trace;
using support::is_near;

constexpr double four_decimals = 5.1e-5;

const arma::mat first_head{{-0.4519, 0.2216},  {-0.5874, 0.0058},  {-0.6300, -0.0632},
                           {-0.5675, -0.0843}, {-0.5526, -0.0981}, {-0.5299, -0.1081}};

Trace trace_of(const char* preset, std::size_t sequence = 0) {
  return core::attention::attend(core::editing::find_preset(preset)->make(), sequence);
}

TEST(ChapterPreset, CausalClassGivesThePublishedContexts) {
  for (const std::size_t sequence : {0, 1})
    EXPECT_TRUE(is_near(trace_of("chapter-causal-class", sequence).output, first_head, four_decimals));
}

TEST(ChapterPreset, TwoHeadsGiveThePublishedContexts) {
  for (const std::size_t sequence : {0, 1}) {
    const Trace trace = trace_of("chapter-two-heads", sequence);
    EXPECT_TRUE(is_near(trace.output->head_cols(2), first_head, four_decimals));
    const arma::mat second_head{{0.4772, 0.1063}, {0.5891, 0.3257}};
    EXPECT_TRUE(is_near(trace.output->submat(0, 2, 1, 3), second_head, four_decimals));
  }
}

TEST(ChapterPreset, MultiHeadGivesThePublishedOutput) {
  const arma::mat published{{0.3190, 0.4858}, {0.2943, 0.3897}, {0.2856, 0.3593},
                            {0.2693, 0.3873}, {0.2639, 0.3928}, {0.2575, 0.4028}};
  for (const std::size_t sequence : {0, 1})
    EXPECT_TRUE(is_near(trace_of("chapter-multi-head", sequence).output, published, four_decimals));
}

TEST(ChapterPreset, DroppedWeightsLoseTheSecondRowAndKeepTheThird) {
  const arma::mat dropped = trace_of("chapter-dropped-weights").heads[0].dropped_weights;
  EXPECT_TRUE(is_near(dropped.row(1), arma::zeros(1, 6), 0));
  EXPECT_TRUE(is_near(dropped.row(2), arma::rowvec{0.7599, 0.6194, 0.6206, 0, 0, 0}, four_decimals));
}

TEST(ChapterPreset, RawScoresAndWeightsOfTheSecondWordAreThePublishedOnes) {
  const Trace trace = trace_of("001-dot-product");
  EXPECT_TRUE(is_near(trace.heads[0].scores.row(1),
                      arma::rowvec{0.9544, 1.4950, 1.4754, 0.8434, 0.7070, 1.0865}, four_decimals));
  EXPECT_TRUE(is_near(trace.heads[0].weights.row(1),
                      arma::rowvec{0.1385, 0.2379, 0.2333, 0.1240, 0.1082, 0.1581}, four_decimals));
}

}  // namespace
}  // namespace golden
