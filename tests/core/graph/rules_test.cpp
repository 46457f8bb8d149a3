
#include <gtest/gtest.h>

#include "core/engine/engine.hpp"
#include "core/graph/attend.hpp"
#include "core/graph/stages.hpp"
#include "tests/support/random_model.hpp"

namespace core::attention {
namespace {

/// Three tokens, two heads of two columns.
struct RulesOfAModel : testing::Test {
  support::Random random{31};
  Model model = support::model(random, 3, 3, 4, 2);

  std::string formula(Stage stage) const { return formula_of(info(stage), model, false); }
};

TEST_F(RulesOfAModel, SayTheFormulasOfThePaper) {
  model.mask.cells.clear();
  model.dropout.rate = 0.5;
  EXPECT_EQ(formula(Stage::scores), "QKᵀ");
  EXPECT_EQ(formula(Stage::scaled_scores), "÷ √2");
  EXPECT_EQ(formula(Stage::masked_scores), "−∞ where key > query");
  EXPECT_EQ(formula(Stage::weights), "softmax of each row");
  EXPECT_EQ(formula(Stage::dropped_weights), "weights × mask");
  EXPECT_EQ(formula(Stage::contexts), "weights·V");
  EXPECT_EQ(formula(Stage::concatenated), "heads 0, 1");
}

TEST_F(RulesOfAModel, SayWhatDepartsWhereItDeparts) {
  const std::string queries = formula(Stage::queries);
  model.departures.split = HeadColumns::interleaved;
  EXPECT_EQ(formula(Stage::queries), queries + ", columns h, h + 2, …");
  model.departures.scores_swapped = true;
  EXPECT_EQ(formula(Stage::scores), "KQᵀ");
  model.dropout.rate = 0.5;
  model.departures.dropout_place = DropoutPlace::masked_scores;
  model.departures.softmax_over = SoftmaxOver::queries;
  EXPECT_EQ(formula(Stage::weights), "softmax of each column of scores × dropout mask");
  EXPECT_EQ(formula(Stage::dropped_weights), "scores were dropped before");
  model.departures.dropout_place = DropoutPlace::scaled_scores;
  model.mask.method = MaskMethod::large_negative;
  model.departures.mask_edge.diagonal = 1;
  EXPECT_EQ(formula(Stage::masked_scores), "scores × dropout mask, −10⁹ where hidden");
  model.departures.merge = HeadColumns::interleaved;
  EXPECT_EQ(formula(Stage::concatenated), "interleaved");
  model.dropout.rescale = false;
  EXPECT_EQ(formula(Stage::dropout_mask), "0 or 1");
}

TEST_F(RulesOfAModel, SayWhatIsCoarseViewedOrInBlocks) {
  const std::string keys = formula(Stage::keys);
  model.departures.viewed.keys = true;
  EXPECT_EQ(formula(Stage::keys), keys + ", viewed without the transpose");
  model.departures.viewed.keys = false;
  model.departures.product_inputs = Precision::tf32;
  EXPECT_EQ(formula(Stage::scores), "QKᵀ, factors in tf32");
  model.departures.scores_prescaled = true;
  EXPECT_EQ(formula(Stage::scores), "QKᵀ, factors in tf32, already scaled");
  model.departures.blocks = {BlockRule::last_dropped, 2};
  model.departures.softmax_precision = Precision::float16;
  EXPECT_EQ(formula(Stage::weights), "softmax of each row in blocks of 2, the last left out in float16");
  model.departures.sums_rounded = true;
  model.departures.precision = Precision::bfloat16;
  EXPECT_EQ(formula(Stage::contexts), "weights·V, factors in tf32, sums in bfloat16");
}

TEST_F(RulesOfAModel, LeaveTheEngineAModelWhoseDepartureHasNoEffect) {
  EXPECT_TRUE(fast::covers(model));
  model.departures.large_negative = -1e4;  // the mask is of −∞
  EXPECT_TRUE(fast::covers(model));
  model.mask.method = MaskMethod::large_negative;
  EXPECT_FALSE(fast::covers(model));
}

TEST_F(RulesOfAModel, KeepEveryMistakeFromTheEngine) {
  const auto covered_with = [&](auto change) {
    Model wrong = model;
    change(wrong.departures);
    return fast::covers(wrong);
  };
  EXPECT_FALSE(covered_with([](Departures& d) { d.softmax_over = SoftmaxOver::queries; }));
  EXPECT_FALSE(covered_with([](Departures& d) { d.scores_swapped = true; }));
  EXPECT_FALSE(covered_with([](Departures& d) { d.mask_edge.diagonal = 1; }));
  EXPECT_FALSE(covered_with([](Departures& d) { d.mask_edge.transposed = true; }));
  EXPECT_FALSE(covered_with([](Departures& d) { d.dropout_place = DropoutPlace::scaled_scores; }));
  EXPECT_FALSE(covered_with([](Departures& d) { d.dropout_place = DropoutPlace::masked_scores; }));
  EXPECT_FALSE(covered_with([](Departures& d) { d.split = HeadColumns::interleaved; }));
  EXPECT_FALSE(covered_with([](Departures& d) { d.merge = HeadColumns::interleaved; }));
  EXPECT_FALSE(covered_with([](Departures& d) { d.precision = Precision::float32; }));
  EXPECT_FALSE(covered_with([](Departures& d) { d.product_inputs = Precision::tf32; }));
  EXPECT_FALSE(covered_with([](Departures& d) { d.sums_rounded = true; }));
  EXPECT_FALSE(covered_with([](Departures& d) { d.softmax_precision = Precision::float16; }));
  EXPECT_FALSE(covered_with([](Departures& d) { d.viewed.queries = true; }));
  EXPECT_FALSE(covered_with([](Departures& d) { d.viewed.keys = true; }));
  EXPECT_FALSE(covered_with([](Departures& d) { d.viewed.values = true; }));
  EXPECT_FALSE(covered_with([](Departures& d) { d.blocks = {BlockRule::last_dropped, 2}; }));
  EXPECT_FALSE(covered_with([](Departures& d) { d.scores_prescaled = true; }));
}

}  // namespace
}  // namespace core::attention
