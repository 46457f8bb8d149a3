#include "core/check/backward_check.hpp"

#include <gmock/gmock.h>

#include "core/base/error.hpp"
#include "core/graph/gradients.hpp"
#include "tests/core/check/check_fixture.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/random_model.hpp"

namespace core::check {
namespace {

using formats::Tensor;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

Tensor tensor(std::string name, const std::vector<arma::mat>& matrices) {
  Tensor made;
  made.name = std::move(name);
  made.shape = {matrices.size(), matrices[0].n_rows, matrices[0].n_cols};
  for (const arma::mat& matrix : matrices)
    for (std::size_t i = 0; i < matrix.n_rows; ++i)
      for (std::size_t j = 0; j < matrix.n_cols; ++j) made.numbers.push_back(matrix(i, j));
  return made;
}

/// A model with two heads that share keys and values, and the gradients of the sum of its output.
struct BackwardFixture : testing::Test {
  BackwardFixture() {
    support::Random random(5);
    model = support::model(random, 5, 3, 8, 2);
    model.n_kv_heads = 1;
    for (auto* linear : {&model.projections->key, &model.projections->value})
      *linear = support::linear(random, 3, 4);
    all = graph::gradients(graph::attention(model), model, 0, {Stage::output});
    queries = {*all.stages.at(Stage::queries, 0), *all.stages.at(Stage::queries, 1)};
    keys = {*all.stages.at(Stage::keys, 0)};
    contexts = {*all.stages.at(Stage::contexts, 0), *all.stages.at(Stage::contexts, 1)};
  }

  Report check(std::vector<Tensor> tensors) const {
    return check_backward(model, split_gradients(support::tensors_in_memory(std::move(tensors)), {}), {}, {});
  }

  Model model;
  graph::Gradients all{0, attention::Trace(2)};
  std::vector<arma::mat> queries, keys, contexts;
};

TEST_F(BackwardFixture, BeginsWithOnesAndSaysSo) {
  const Report report = check({tensor("d_queries", queries), tensor("dk", keys)});
  EXPECT_TRUE(report.agrees) << report_text(report);
  EXPECT_THAT(report.notes, ElementsAre(StartsWith("d_output is not given: ")));
  ASSERT_EQ(report.stages.size(), 2u);
  EXPECT_EQ(report.stages[0].name(), "d_keys");  // in the order of a backward
  EXPECT_EQ(report.stages[0].tensor, "dk");
  EXPECT_THAT(report_text(report), HasSubstr("Everything agrees: 2 tensors of 2 gradients were compared.\n"));
}

TEST_F(BackwardFixture, BeginsWithTheContextVectorsOfAKernel) {
  for (arma::mat& matrix : contexts) matrix *= 2;
  for (arma::mat& matrix : queries) matrix *= 2;
  const Report report = check({tensor("do", contexts), tensor("q.grad", queries)});
  EXPECT_TRUE(report.agrees) << report_text(report);
  EXPECT_THAT(report.notes, ElementsAre(HasSubstr("begins with do as given")));
}

TEST_F(BackwardFixture, NamesTheBug) {
  for (arma::mat& matrix : queries) matrix *= 2;  // of 4 columns: without 1/√4
  for (arma::mat& matrix : keys) matrix *= 2;
  const Report report = check({tensor("d_queries", queries), tensor("d_keys", keys)});
  EXPECT_THAT(report.causes(), ElementsAre("backward_scale_missing"));
  EXPECT_THAT(report_text(report), HasSubstr("First gradient that differs: d_keys.\n"
                                             "Likely cause: backward_scale_missing: The scale is missing"));
  // Queries alone cannot tell it from one of theirs.
  EXPECT_THAT(check({tensor("d_queries", queries)}).causes(),
              ElementsAre("backward_scale_missing", "backward_scale_missing_in_queries"));
}

TEST_F(BackwardFixture, ReadsWeightsOfLinearLayers) {
  const arma::mat& weight = all.of({attention::MatrixName::query_weight});
  for (const bool is_transposed : {false, true}) {
    Tensor given = tensor("attention.W_query.weight.grad", {is_transposed ? arma::mat(weight.t()) : weight});
    given.shape.erase(given.shape.begin());
    const Report report = check({given});
    EXPECT_TRUE(report.agrees) << report_text(report);
    EXPECT_EQ(report.stages[0].name(), "d_query_weight");
    EXPECT_EQ(report.stages[0].reading.empty(), !is_transposed);
  }
}

TEST_F(BackwardFixture, DescribesWhatNoBugExplains) {
  queries[1].row(2) += 0.5;
  const Report report = check({tensor("d_queries", queries)});
  EXPECT_FALSE(report.agrees);
  EXPECT_THAT(report.causes(), ElementsAre());
  EXPECT_THAT(report.pattern, HasSubstr("row 2"));
  EXPECT_THAT(report_json(report), HasSubstr("\"first_difference\": \"d_queries\", \"causes\": []"));
}

TEST_F(BackwardFixture, ReportsShapesAndNan) {
  Report report = check({tensor("d_queries", {arma::mat(2, 2)}), tensor("d_keys", keys)});
  EXPECT_FALSE(report.agrees);
  EXPECT_THAT(report.causes(), ElementsAre());
  EXPECT_THAT(report_text(report), HasSubstr("DIFFERS: expected [2, 5, 4], got [1, 2, 2]"));
  EXPECT_THAT(report_text(report), HasSubstr("Whatever could be compared agrees: 1 tensor"));
  keys[0](1, 2) = arma::datum::nan;
  report = check({tensor("d_keys", keys)});
  EXPECT_FALSE(report.agrees);
  EXPECT_THAT(report_text(report), HasSubstr("not a number apart at head 0, row 1, column 2"));
  Tensor weight = tensor("d_query_weight", {arma::mat(2, 2)});
  EXPECT_THAT(report_text(check({weight, tensor("d_queries", queries)})),
              HasSubstr("DIFFERS: expected [3, 8], got [1, 2, 2]"));
  EXPECT_THAT(support::error_of([&] {
                check({tensor("d_output", {arma::mat(2, 2)}), tensor("d_queries", queries)});
              }),
              StartsWith("memory: d_output: expected [5, 8], got [1, 2, 2]"));
  EXPECT_EQ(support::error_of([&] { check({tensor("d_output", {arma::mat(5, 8)})}); }),
            "memory: expected gradients other than the one that a backward begins with");
}

TEST_F(BackwardFixture, KnowsGradientsByTheirNames) {
  for (const char* name :
       {"d_queries", "grad_q", "q.grad", "dq", "d_query_weight", "dwq", "dL_dvalues", "W_key.bias.grad"})
    EXPECT_TRUE(is_gradient(name)) << name;
  for (const char* name : {"queries", "dropout_mask", "dropped_weights", "dots", "d_model", "grad"})
    EXPECT_FALSE(is_gradient(name)) << name;
  Tensor width = tensor("d_k", {arma::mat(1, 1)});
  width.shape = {};  // a setting
  const auto file =
      support::tensors_in_memory({tensor("d_queries", queries), tensor("weights", queries), width});
  EXPECT_TRUE(split_gradients(file, {}).has_gradients() && split_gradients(file, {}).has_stages());
  EXPECT_EQ(split_gradients(file, {}).others.tensors().size(), 2u);
  EXPECT_FALSE(split_gradients(file, {{"d_queries", ""}}).has_gradients());
  EXPECT_EQ(split_gradients(file, {{"weights", "d_keys"}}).names.at("keys"), "weights");
}

}  // namespace
}  // namespace core::check
