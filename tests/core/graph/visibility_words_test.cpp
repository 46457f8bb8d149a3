#include "core/graph/words.hpp"

#include <gtest/gtest.h>

namespace core::explain {
namespace {

using attention::Model;

Model five_tokens() {
  Model m;
  m.sequences = {{attention::numbered_tokens(5), arma::mat(5, 2, arma::fill::ones)}};
  return m;
}

TEST(SightWords, NameTheRuleThatHid) {
  Model m = five_tokens();
  m.mask.window = {1, {}};
  m.mask.prefix = 1;
  m.mask.documents = {0, 0, 0, 0, 1};
  m.mask.hidden_keys = {{2}};
  m.mask.cells = {{0, 1, true}};
  EXPECT_EQ(describe_visibility(m, 0, 0, 3), "masked: key 3 comes after query 0");
  EXPECT_EQ(describe_visibility(m, 0, 3, 1), "masked: key 1 is outside the window of query 3 (1 left)");
  EXPECT_EQ(describe_visibility(m, 0, 3, 0),
            "unmasked: key 0 is one of the first 1, which every query attends to");
  EXPECT_EQ(describe_visibility(m, 0, 4, 3), "masked: key 3 is of document 0, query 4 of document 1");
  EXPECT_EQ(describe_visibility(m, 0, 3, 2), "masked: key 2 is padding");
  EXPECT_EQ(describe_visibility(m, 0, 0, 1), "unmasked by hand");
  EXPECT_EQ(describe_visibility(m, 0, 1, 1), "unmasked");
}

TEST(SightWords, FormulasCompareTheNumbersThatDecide) {
  Model m = five_tokens();
  EXPECT_EQ(visibility_formula(m, 0, 2, 1), "key 1 ≤ query 2");
  EXPECT_EQ(visibility_formula(m, 0, 2, 3), "key 3 > query 2");
  m.mask.causal = false;
  EXPECT_EQ(visibility_formula(m, 0, 2, 3), "no causal mask");
  m.mask.window = {2, 1};
  EXPECT_EQ(visibility_formula(m, 0, 2, 3), "within the window (2 left, 1 right)");
  EXPECT_EQ(visibility_formula(m, 0, 0, 3), "key 3 > 0 + 1");
  EXPECT_EQ(visibility_formula(m, 0, 4, 1), "key 1 < 4 − 2");
  m.mask.prefix = 2;
  EXPECT_EQ(visibility_formula(m, 0, 4, 1), "key 1 < prefix 2");
  m.mask.documents = {3, 3, 3, 3, 5};
  EXPECT_EQ(visibility_formula(m, 0, 4, 1), "document 3 ≠ 5");
  m.mask.hidden_keys = {{1}};
  EXPECT_EQ(visibility_formula(m, 0, 4, 1), "key 1 is padding");
}

TEST(SightWords, SayWhereFewerOrMoreQueriesStand) {
  Model m = five_tokens();
  m.given.stages = {{attention::Stage::keys, {arma::mat(7, 2, arma::fill::ones)}}};
  m.sequences[0].key_tokens = attention::numbered_tokens(7);
  EXPECT_EQ(visibility_formula(m, 0, 1, 6), "key 6 > query 1 + 2");
  EXPECT_EQ(describe_visibility(m, 0, 1, 6),
            "masked: key 6 comes after query 1, which is the position of key 3");
  m.mask.align = attention::MaskAlignment::first;
  EXPECT_EQ(describe_visibility(m, 0, 1, 6), "masked: key 6 comes after query 1");
  m = five_tokens();
  m.given.stages = {{attention::Stage::keys, {arma::mat(3, 2, arma::fill::ones)}}};
  m.sequences[0].key_tokens = attention::numbered_tokens(3);
  EXPECT_EQ(visibility_formula(m, 0, 0, 0), "key 0 > query 0 − 2");
  EXPECT_EQ(describe_visibility(m, 0, 0, 0),
            "masked: key 0 comes after query 0, which comes before every key");
}

}  // namespace
}  // namespace core::explain
