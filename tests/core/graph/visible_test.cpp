#include "core/graph/visible.hpp"
#include "core/graph/validation.hpp"

#include <gtest/gtest.h>

#include "tests/support/random_model.hpp"

namespace core::attention {
namespace {

Model tokens(std::size_t n) {
  Model m;
  m.sequences = {{numbered_tokens(n), arma::mat(n, 2, arma::fill::ones)}};
  return m;
}

/// Returns a model whose keys come from other tokens than its queries.
Model queries_and_keys(std::size_t n_queries, std::size_t n_keys) {
  Model m = tokens(n_queries);
  m.given.stages = {{Stage::keys, {arma::mat(n_keys, 2, arma::fill::ones)}}};
  m.sequences[0].key_tokens = numbered_tokens(n_keys);
  return m;
}

testing::AssertionResult sees(const Model& model, const char* expected, std::size_t sequence = 0) {
  const arma::mat visible = visibility_matrix(model, sequence);
  if (arma::approx_equal(visible, arma::mat(expected), "absdiff", 0)) return testing::AssertionSuccess();
  return testing::AssertionFailure() << visible << "expected " << expected;
}

TEST(Visible, AWindowCountsKeysBesideTheQuerysOwn) {
  Model m = tokens(4);
  m.mask.window = {1, {}};
  EXPECT_TRUE(sees(m, "1 0 0 0; 1 1 0 0; 0 1 1 0; 0 0 1 1"));
  m.mask.causal = false;
  EXPECT_TRUE(sees(m, "1 1 1 1; 1 1 1 1; 0 1 1 1; 0 0 1 1"));
  m.mask.window = {{}, 0};
  EXPECT_TRUE(sees(m, "1 0 0 0; 1 1 0 0; 1 1 1 0; 1 1 1 1")) << "the causal mask in other words";
  m.mask.window = {0, 0};
  EXPECT_TRUE(sees(m, "1 0 0 0; 0 1 0 0; 0 0 1 0; 0 0 0 1"));
}

TEST(Visible, APrefixIsSeenThroughRuleAndWindow) {
  Model m = tokens(4);
  m.mask.window = {1, {}};
  m.mask.prefix = 2;
  EXPECT_TRUE(sees(m, "1 1 0 0; 1 1 0 0; 1 1 1 0; 1 1 1 1"));
}

TEST(Visible, DocumentsAndPaddingHideMoreThanAPrefixShows) {
  Model m = tokens(4);
  m.mask.prefix = 2;
  m.mask.documents = {7, 7, 3, 3};
  EXPECT_TRUE(sees(m, "1 1 0 0; 1 1 0 0; 0 0 1 0; 0 0 1 1"));
  m.mask.hidden_keys = {{0, 2}};
  EXPECT_TRUE(sees(m, "0 1 0 0; 0 1 0 0; 0 0 0 0; 0 0 0 1"));
}

TEST(Visible, PaddingIsOfEachSequence) {
  Model m = tokens(2);
  m.sequences.push_back(m.sequences[0]);
  m.mask.hidden_keys = {{}, {1}};
  EXPECT_TRUE(sees(m, "1 0; 1 1", 0));
  EXPECT_TRUE(sees(m, "1 0; 1 0", 1));
}

TEST(Visible, FewerQueriesAreTheLastKeysOrTheFirst) {
  Model m = queries_and_keys(2, 4);
  EXPECT_TRUE(sees(m, "1 1 1 0; 1 1 1 1"));
  m.mask.align = MaskAlignment::first;
  EXPECT_TRUE(sees(m, "1 0 0 0; 1 1 0 0"));
  m.mask.window = {0, {}};
  EXPECT_TRUE(sees(m, "1 0 0 0; 0 1 0 0"));
}

TEST(Visible, QueriesBeforeTheFirstKeySeeNone) {
  Model m = queries_and_keys(4, 2);
  ASSERT_FALSE(check(m));
  EXPECT_TRUE(sees(m, "0 0; 0 0; 1 0; 1 1"));
}

TEST(Visible, ACellByHandHasTheLastWord) {
  Model m = tokens(3);
  m.mask.hidden_keys = {{0}};
  m.mask.cells = {{1, 0, true}, {2, 2, false}};
  EXPECT_TRUE(sees(m, "0 0 0; 1 1 0; 0 1 0"));
}

TEST(Visible, SaysWhatDecides) {
  Model m = tokens(5);
  m.mask.window = {1, {}};
  m.mask.prefix = 1;
  m.mask.documents = {0, 0, 0, 0, 1};
  m.mask.hidden_keys = {{3}};
  m.mask.cells = {{0, 1, true}};
  const auto reason = [&](std::size_t query, std::size_t key) { return visibility(m, 0, query, key).reason; };
  EXPECT_EQ(reason(0, 1), VisibilityReason::by_hand);
  EXPECT_EQ(reason(0, 2), VisibilityReason::by_future);
  EXPECT_EQ(reason(3, 1), VisibilityReason::by_window);
  EXPECT_EQ(reason(3, 0), VisibilityReason::by_prefix);
  EXPECT_EQ(reason(4, 0), VisibilityReason::by_document);
  EXPECT_EQ(reason(3, 3), VisibilityReason::by_padding);
  EXPECT_EQ(reason(2, 2), VisibilityReason::by_nothing);
}

TEST(Visible, OneCellIsAsAllAre) {
  support::Random random(71);
  for (int k = 0; k < 200; ++k) {
    Model m = support::model(random, 1 + support::below(random, 6), 2, 2, 1, 2);
    m.mask.causal = support::coin(random);
    support::add_mask_rules(random, m);
    for (std::size_t s = 0; s < 2; ++s) {
      const arma::mat visible = visibility_matrix(m, s);
      for (std::size_t i = 0; i < visible.n_rows; ++i)
        for (std::size_t j = 0; j < visible.n_cols; ++j)
          ASSERT_EQ(visible(i, j) == 1, visibility(m, s, i, j).visible);
    }
  }
}

TEST(Visible, WhatDoesNotFitIsNamed) {
  Model m = tokens(3);
  m.mask.prefix = 4;
  EXPECT_EQ(check(m)->message, "expected at most 3 keys, got 4");
  m = tokens(3);
  m.mask.documents = {0, 0};
  EXPECT_EQ(check(m)->message, "expected 3 numbers, one for each token, got 2");
  m = tokens(3);
  m.mask.hidden_keys = {{0}, {1}};
  EXPECT_EQ(check(m)->message, "expected 1 lists of keys, one for each sequence, got 2");
  m.mask.hidden_keys = {{3}};
  EXPECT_EQ(check(m)->message, "expected keys below 3, got 3");
  m.mask.hidden_keys = {{1, 0}};
  EXPECT_EQ(check(m)->path, "mask.hidden_keys");
  m = queries_and_keys(2, 3);
  m.mask.documents = {0, 0, 0};
  EXPECT_EQ(check(m)->message, "expected as many queries as keys, got 2 and 3");
}

}  // namespace
}  // namespace core::attention
