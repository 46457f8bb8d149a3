
#include <gtest/gtest.h>

#include "core/engine/engine.hpp"
#include "core/graph/attend.hpp"
#include "core/graph/graph.hpp"
#include "core/graph/injected_bugs.hpp"
#include "core/graph/stages.hpp"
#include "tests/support/random_model.hpp"

namespace core::attention {
namespace {

/// Three tokens, two heads, d_head = 2.
struct RulesOfAModel : testing::Test {
  support::Random random{31};
  Model model = support::model(random, 3, 3, 4, 2);

  std::string formula(Stage stage) const {
    return formula_of(graph::attention(model), model, info(stage), false);
  }
  void make(const char* name, bugs::Numbers size = {}) {
    model = bugs::injected({.bug = bugs::find_bug(name), .numbers = std::move(size)}, model);
  }
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

TEST_F(RulesOfAModel, SayWhatIsAMistake) {
  const std::string queries = formula(Stage::queries);
  make("heads_interleaved");
  EXPECT_EQ(formula(Stage::queries), queries + ", columns h, h + 2, …");
  make("query_key_swapped");
  EXPECT_EQ(formula(Stage::scores), "KQᵀ");
  model.dropout.rate = 0.5;
  model.dropout.place = DropoutPlace::masked_scores;
  make("softmax_over_queries");
  EXPECT_EQ(formula(Stage::weights), "softmax of each column of scores × dropout mask");
  EXPECT_EQ(formula(Stage::dropped_weights), "scores were dropped before");
  model.dropout.place = DropoutPlace::scaled_scores;
  model.mask.method = MaskMethod::large_negative;
  make("mask_shows_next");
  EXPECT_EQ(formula(Stage::masked_scores), "scores × dropout mask, −10⁹ where masked");
  make("heads_interleaved:combined");
  EXPECT_EQ(formula(Stage::concatenated), "interleaved");
  model.dropout.rescale = false;
  EXPECT_EQ(formula(Stage::dropout_mask), "0 or 1");
}

TEST_F(RulesOfAModel, SayWhatIsCoarseViewedOrInBlocks) {
  const std::string keys = formula(Stage::keys);
  make("view_without_transpose:key");
  EXPECT_EQ(formula(Stage::keys), keys + ", viewed without the transpose");
  model.bugs.clear();
  model.arithmetic.product_inputs = Precision::tf32;
  EXPECT_EQ(formula(Stage::scores), "QKᵀ, factors in tf32");
  make("scale_twice");
  EXPECT_EQ(formula(Stage::scores), "QKᵀ, factors in tf32, already scaled");
  make("last_block_dropped", {2});
  make("softmax_half_precision");
  EXPECT_EQ(formula(Stage::weights), "softmax of each row in blocks of 2, the last one skipped in float16");
  model.arithmetic.sums_rounded = true;
  model.arithmetic.precision = Precision::bfloat16;
  EXPECT_EQ(formula(Stage::contexts), "weights·V, factors in tf32, sums in bfloat16");
}

TEST_F(RulesOfAModel, LeaveTheEngineAModelWhoseOptionHasNoEffect) {
  EXPECT_TRUE(fast::supports(model));
  model.mask.large_negative = -1e4;  // unused: the mask adds −∞
  EXPECT_TRUE(fast::supports(model));
  model.mask.method = MaskMethod::large_negative;
  EXPECT_FALSE(fast::supports(model));
}

TEST_F(RulesOfAModel, KeepEveryMistakeButFloat32FromTheEngine) {
  model.dropout.rate = 0.5;
  for (const bugs::Bug* bug : bugs::offered_bugs()) {
    const Model wrong = injected(*bug, model);
    if (bugs::has_bugs(wrong)) {
      EXPECT_EQ(fast::supports(wrong), std::string_view(bug->name) == "float32_precision") << bug->name;
    }
  }
}

}  // namespace
}  // namespace core::attention
