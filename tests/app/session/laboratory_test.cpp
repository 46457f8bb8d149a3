#include <gtest/gtest.h>

#include "core/editing/presets.hpp"
#include "core/graph/attend.hpp"
#include "tests/support/look.hpp"
#include "tests/support/program.hpp"
#include "tests/support/waiting.hpp"

namespace {

using app::Key;
using app::Tab;
using gui::Program;

/// Laboratory on causal weights with dropout, after all masks are sampled.
struct Laboratory : testing::Test {
  Program p;
  void SetUp() override {
    p.store.dispatch(app::LoadPreset{"004-causal-dropout"});
    p.click("menu/View");
    p.click("menu/tab/laboratory");
    settle();
  }
  void settle() {
    for (int k = 0; k < 1000 && p.store.is_working(); ++k) p.run(1);
    ASSERT_FALSE(p.store.is_working());
    p.run();
  }
};

TEST_F(Laboratory, ShowsTheMeanOfAsManyMasksAsItsFieldAsksFor) {
  core::attention::DropoutStudy study(p.store.model(), 0, 0,
                                      p.store.live().trace().at(core::attention::Stage::weights, 0));
  study.advance(16);
  const arma::mat mean_of_16 = study.mean();
  study.advance(48);
  ASSERT_NE(p.store.laboratory(), nullptr);
  const app::Laboratory& lab = *p.store.laboratory();
  EXPECT_EQ(lab.count(), app::Laboratory::max_masks);
  EXPECT_TRUE(arma::approx_equal(lab.mean, study.mean(), "absdiff", 0));
  EXPECT_TRUE(arma::approx_equal(lab.difference, study.mean() - study.weights(), "absdiff", 0));
  EXPECT_EQ(arma::abs(lab.difference).max(), study.distances().back());
  p.fill_in("laboratory/masks", "16");
  settle();
  EXPECT_EQ(p.store.laboratory()->n_masks, 16u);
  EXPECT_TRUE(arma::approx_equal(p.store.laboratory()->mean, mean_of_16, "absdiff", 0));
}

TEST_F(Laboratory, DrawsAgainWithSpaceAndGoesBackWithEscape) {
  const auto seed = p.store.model().dropout.seed;
  p.key(Key::space);
  EXPECT_EQ(p.store.model().dropout.seed, seed + 1);
  p.click("laboratory/again");
  EXPECT_EQ(p.store.model().dropout.seed, seed + 2);
  p.key(Key::escape);
  EXPECT_EQ(p.store.view().look.tab, Tab::stages);
  EXPECT_EQ(p.store.laboratory(), nullptr);
}

TEST_F(Laboratory, IsReachedFromTheTitleOfTheDropoutMask) {
  p.key(Key::escape);
  p.play(support::turn_wheel(p.center("region/stages"), -100));
  p.click("strip/laboratory");
  EXPECT_EQ(p.store.view().look.tab, Tab::laboratory);
}

TEST_F(Laboratory, ChoosesMasksOnItsCurve) {
  const auto curve = p.rect("laboratory/curve");
  p.play(support::click({curve.min.x + (curve.max.x - curve.min.x) / 2, curve.center().y}));
  EXPECT_EQ(p.store.view().look.laboratory_masks, 32u) << "the middle of 1 … 1024 on a logarithmic axis";
}

TEST_F(Laboratory, ShowsTenOnesOfTheSameRule) {
  EXPECT_TRUE(p.has("laboratory/ones"));
  EXPECT_TRUE(arma::approx_equal(p.store.laboratory()->ones, arma::rowvec{2, 2, 0, 2, 2, 0, 0, 0, 0, 2},
                                 "absdiff", 0));
}

TEST_F(Laboratory, StandsInEvaluationAndAtEveryRate) {
  p.key(Key::d);
  settle();
  EXPECT_LT(p.store.laboratory()->distances.back(), 1e-12);
  p.key(Key::d);
  for (const double rate : {0.0, 0.99, 1.0}) {
    p.edit(core::editing::SetDropoutRate{rate});
    settle();
    EXPECT_EQ(p.store.laboratory()->count(), app::Laboratory::max_masks) << rate;
  }
}

TEST(LaboratoryAtSixtyFourTokens, IsDrawnInPortionsBesideTheWindow) {
  Program p;
  p.edit(core::editing::SetTokenCount{64});
  p.edit(core::editing::SetDropoutRate{0.3});
  support::look(p.store, [](app::View& v) { v.look.tab = Tab::laboratory; });
  p.store.update();
  EXPECT_EQ(p.store.laboratory(), nullptr) << "the window's thread draws no mask";
  EXPECT_TRUE(p.store.is_working());
  support::finish_working(p.store);
  ASSERT_NE(p.store.laboratory(), nullptr);
  EXPECT_GE(p.store.laboratory()->count(), 1u);
}

TEST(LaboratoryOfMoreTokensThanPixels, DrawsAllOfItsMapsBesideEachOther) {
  Program p;
  p.edit(core::editing::SetTokenCount{700});
  support::look(p.store, [](app::View& v) { v.look.tab = Tab::laboratory; });
  p.store.update();
  support::finish_working(p.store);
  p.run();
  const auto room = p.rect("region/laboratory");
  const auto weights = p.rect("laboratory/weights"), mask = p.rect("laboratory/mask"),
             dropped = p.rect("laboratory/dropped");
  EXPECT_LT(weights.max.x, mask.min.x);
  EXPECT_LT(mask.max.x, dropped.min.x);
  EXPECT_LT(dropped.max.x, room.max.x);
  EXPECT_LT(weights.max.y - weights.min.y, room.max.y - room.min.y);
}

TEST(LaboratoryOfAnEditedModel, StaysThatOfTheOldOneUntilTheNewOneHasAMask) {
  Program p;
  p.store.dispatch(app::LoadPreset{"004-causal-dropout"});
  support::look(p.store, [](app::View& v) { v.look.tab = Tab::laboratory; });
  p.run();
  const auto version = p.store.laboratory()->version;
  const arma::rowvec ones = p.store.laboratory()->ones;
  p.store.dispatch(app::ApplyEdit{core::editing::SetDropoutSeed{p.store.model().dropout.seed + 1}});
  p.store.update();
  ASSERT_NE(p.store.laboratory(), nullptr);
  EXPECT_EQ(p.store.laboratory()->version, version);
  support::finish_working(p.store);
  EXPECT_EQ(p.store.laboratory()->version, p.store.live().version());
  EXPECT_FALSE(arma::approx_equal(p.store.laboratory()->ones, ones, "absdiff", 0));
  p.store.dispatch(app::ApplyEdit{core::editing::RemoveToken{0}});
  p.store.update();
  EXPECT_EQ(p.store.laboratory(), nullptr) << "masks of another shape say nothing";
}

}  // namespace
