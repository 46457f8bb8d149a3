#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/graph/attend.hpp"
#include "tests/golden/fixture_model.hpp"
#include "tests/support/matchers.hpp"

namespace golden {
namespace {

const std::set<std::string> full_cases{"s000_causal",
                                       "s001_attention_mask_small",
                                       "s001_attention_small",
                                       "s001_mha_as_written_small",
                                       "s001_mha_correct_small",
                                       "s001_raw_dot_product",
                                       "s002_printed_stale",
                                       "s002_qkv",
                                       "s003_causal_class",
                                       "s004_causal_dropout",
                                       "s004_causal_neg_inf",
                                       "s004_causal_renormalise",
                                       "s004_self_attention_v2",
                                       "v01_minimal",
                                       "v02_two_tokens",
                                       "v03_full_proj",
                                       "v04_dropout",
                                       "v05_eight_heads",
                                       "v06_no_mask",
                                       "v07_long",
                                       "v08_extreme_causal",
                                       "v09_extreme_full",
                                       "v10_equal_rows",
                                       "v11_one_token_batch",
                                       "v12_batch_mha"};

/// How many tensors of printed numbers each notebook's case holds.
const std::map<std::string, std::size_t> printed_cases{
    {"s000_causal", 2},         {"s001_raw_dot_product", 3},    {"s002_printed_stale", 1},
    {"s004_causal_neg_inf", 1}, {"s004_causal_renormalise", 1}, {"s004_self_attention_v2", 2}};

TEST(Fixtures, AreAllKnownToATest) {
  std::set<std::string> found;
  for (const auto& [id, schema] : support::fixture_schemas())
    if (schema == "attention-fixture-1")
      found.insert(id);
    else
      EXPECT_THAT(schema, testing::AnyOf("attention-sampled-1", "tensor-demo-1", "text-demo-1")) << id;
  EXPECT_EQ(found, full_cases);
}

class FullCase : public testing::TestWithParam<std::string> {
 protected:
  support::Fixture fixture = support::read_fixture(GetParam());
};

TEST_P(FullCase, HoldsEveryTensorOfItsComputation) {
  std::set<std::string> names;
  for (const auto& [name, tensor] : fixture.tensors) names.insert(name);
  EXPECT_EQ(names, expected_tensors(fixture.config));
}

TEST_P(FullCase, EqualsEveryStage) {
  expect_stages(fixture, model_of(fixture));
}

TEST_P(FullCase, EqualsEveryStageOfTheEngine) {
  expect_stages_of_engine(fixture, model_of(fixture));
}

TEST_P(FullCase, EqualsWhatTheNotebookPrints) {
  const auto row = printed_cases.find(GetParam());
  ASSERT_EQ(fixture.printed.size(), row == printed_cases.end() ? 0 : row->second);
  expect_printed(fixture, model_of(fixture));
}

INSTANTIATE_TEST_SUITE_P(Fixtures, FullCase, testing::ValuesIn(full_cases),
                         [](const auto& parameter) { return parameter.param; });

TEST(Walkthrough, OfOneQueryByDotProductsEqualsItsRowOfTheStages) {
  const auto walk = support::read_walkthrough("s001_raw_dot_product");
  const auto trace = core::attention::attend(model_of(support::read_fixture("s001_raw_dot_product")));
  const auto& head = trace.heads.front();
  EXPECT_NEAR(head.scores(walk.query, 0), walk.dot_with_first, 1e-12);
  EXPECT_TRUE(support::is_near(head.scores.row(walk.query), walk.scores.matrix(), walk.scores.absolute));
  EXPECT_TRUE(support::is_near(head.weights.row(walk.query), walk.weights.matrix(), walk.weights.absolute));
  EXPECT_TRUE(support::is_near(trace.output.row(walk.query), walk.context.matrix(), walk.context.absolute));
  EXPECT_TRUE(support::is_near(head.scores.row(walk.query), arma::rowvec(walk.printed_scores), 5.1e-5));
}

}  // namespace
}  // namespace golden
