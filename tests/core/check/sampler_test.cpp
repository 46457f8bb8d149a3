#include "core/check/causes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "core/graph/stages.hpp"
#include "tests/core/graph/any_model.hpp"
#include "tests/support/random_model.hpp"

namespace core::check {
namespace {

using attention::StageInfo;

bool same(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= 1e-12 * (1 + std::abs(b));
}

void expect_rows(const Sampler& sampler, const Model& model, std::optional<Stage> first = {}) {
  const Sample& sample = sampler.sample();
  const LazyTrace few = first ? LazyTrace(model, &sampler, *first) : LazyTrace(model, &sampler), all(model);
  for (const StageInfo& stage : attention::stages()) {
    if (!stage.present(model)) continue;
    for (std::size_t h = 0; h < stage.count(model.n_heads); ++h) {
      const arma::mat &some = few.matrix(stage.stage, sample.sequence, h),
                      &whole = all.matrix(stage.stage, sample.sequence, h);
      ASSERT_GE(some.n_rows, sample.rows.size()) << stage.name;
      ASSERT_EQ(some.n_cols, whole.n_cols) << stage.name;
      for (std::size_t a = 0; a < sample.rows.size(); ++a)
        for (std::size_t j = 0; j < whole.n_cols; ++j)
          ASSERT_TRUE(same(some(a, j), whole(sample.rows[a], j)))
              << stage.name << " of head " << h << ", row " << sample.rows[a] << ", column " << j;
    }
  }
}

TEST(Sampler, GivesTheRowsThatAttendGivesForEveryOption) {
  support::Random random(11);
  std::size_t n_models = 0;
  for (std::size_t k = 0; k < 400; ++k) {
    const Model model = explain::any_model(random);
    if (!model.given.empty() || model.has_key_embeddings()) continue;
    Sample sample{support::below(random, model.sequences.size()), {}};
    for (std::size_t i = 0; i < model.n_tokens(); ++i)
      if (support::coin(random)) sample.rows.push_back(i);
    if (sample.rows.empty()) sample.rows = {0};
    std::ranges::reverse(sample.rows);
    SCOPED_TRACE(k);
    ASSERT_NO_FATAL_FAILURE(expect_rows(Sampler(sample, model), model));
    ++n_models;
  }
  EXPECT_GT(n_models, 100u);
}

TEST(Sampler, KeepsNothingThatAnotherModelHasOtherwise) {
  support::Random random(12);
  const Model first = support::model(random, 5, 4, 4, 2);
  const Sampler sampler({0, {4, 1}}, first);
  expect_rows(sampler, first);
  Model other = first;
  other.projections->key.weight = support::matrix(random, 4, 4);
  other.projections->value.bias = arma::mat(1, 4, arma::fill::ones);
  other.sequences.front().embeddings = support::matrix(random, 5, 4);
  other = injected(*bugs::find_offered_bug("heads_interleaved"), other);
  other.dropout.rate = 0.5;
  expect_rows(sampler, other);
  other.dropout.seed = 7;
  expect_rows(sampler, other);
  expect_rows(sampler, first);
}

TEST(Sampler, TakesWhatAMistakeDoesNotChangeFromTheRightModel) {
  support::Random random(13);
  std::size_t n_hypotheses = 0;
  for (std::size_t k = 0; k < 150; ++k) {
    const Model model = explain::any_model(random);
    if (!model.given.empty() || model.has_key_embeddings()) continue;
    const std::size_t last = model.n_tokens() - 1;
    const Sampler sampler({0, last > 0 ? std::vector<std::size_t>{last, 0} : std::vector<std::size_t>{0}},
                          model);
    for (const Hypothesis& hypothesis : hypotheses_for(model, {})) {
      SCOPED_TRACE(std::to_string(k) + ": " + hypothesis.mistakes.front()->name + " " + hypothesis.detail);
      ASSERT_NO_FATAL_FAILURE(expect_rows(sampler, hypothesis.injected(model), hypothesis.first));
      ++n_hypotheses;
    }
  }
  EXPECT_GT(n_hypotheses, 1000u);
}

}  // namespace
}  // namespace core::check
