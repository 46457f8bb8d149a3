#include "core/graph/compare.hpp"

#include <gtest/gtest.h>

#include <string_view>

#include "core/graph/attend.hpp"
#include "core/graph/validation.hpp"
#include "core/graph/visible.hpp"
#include "tests/support/first_difference.hpp"
#include "tests/support/random_model.hpp"

namespace core::compare {
namespace {

using namespace core::attention;

Model sample() {
  support::Random random(5);
  return support::model(random, 4, 3, 4, 2);
}

const Switch& named(std::string_view name) {
  for (const Switch& s : switches())
    if (name == s.name) return s;
  throw std::out_of_range(std::string(name));
}

Stage first_stage(const Model& a, const Model& b) {
  const auto all = compare(a, attend(a), b, attend(b));
  return support::first_difference(all)->stage;
}

TEST(Switches, ComeBackWhenFlippedTwice) {
  Model model = sample();
  model.dropout.rate = 0.25;
  for (const Switch& s : switches()) {
    const Model other = s.flipped(model);
    EXPECT_FALSE(other == model) << s.name;
    EXPECT_FALSE(attention::check(other)) << s.name;
    EXPECT_NE(s.state(other), s.state(model)) << s.name;
    EXPECT_EQ(s.flipped(other), model) << s.name;
  }
}

TEST(Switches, ChangeTheStageTheySpeakOfFirst) {
  Model model = sample();
  model.dropout.rate = 0.5;
  EXPECT_EQ(first_stage(named("mask").flipped(model), model), Stage::mask);
  EXPECT_EQ(first_stage(named("scale").flipped(model), model), Stage::scaled_scores);
  EXPECT_EQ(first_stage(named("dropout").flipped(model), model), Stage::dropout_mask);
  EXPECT_EQ(first_stage(named("merge").flipped(model), model), Stage::concatenated);
}

TEST(Switches, TakeHandMadeCellsAwayWithTheMask) {
  Model model = sample();
  model.mask.causal = false;
  model.mask.cells = {{0, 0, false}};
  const Model open = named("mask").flipped(model);
  EXPECT_EQ(arma::accu(visibility_matrix(open, 0)), 16);
  EXPECT_EQ(named("mask").state(open), "mask off");
}

TEST(Switches, DropHalfWhereTheModelHasNoRate) {
  const Model dropped = named("dropout").flipped(sample());
  EXPECT_EQ(dropped.dropout.rate, 0.5);
  EXPECT_TRUE(dropped.dropout.active());
}

}  // namespace
}  // namespace core::compare
