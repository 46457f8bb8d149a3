#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/files/session.hpp"
#include "core/graph/attend.hpp"
#include "core/graph/given_model.hpp"
#include "tests/core/graph/any_model.hpp"
#include "tests/support/error_of.hpp"

namespace core::formats {
namespace {

using namespace attention;
using enum Stage;
using testing::HasSubstr;

Model model_in(const std::string& text) {
  return parse_session(text, "s.json").model;
}

std::string error_in_given(const std::string& text) {
  return support::error_of([&] { parse_session(text, "s.json"); });
}

TEST(SessionGiven, StartsFromWeightsAlone) {
  const Model model = model_in(R"({"attnscope": 1, "tokens": ["a", "b"],
    "given": {"weights": [[[1, 0], [0.25, 0.75]], [[0.5, 0.5], [0, 1]]]}})");
  EXPECT_EQ(model.n_heads, 2u);
  EXPECT_FALSE(model.has_embeddings());
  EXPECT_EQ(model.sequences[0].tokens, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(attend(model).heads[0].weights(1, 0), 0.25);
}

TEST(SessionGiven, TakesOneHeadWithoutAListOfHeads) {
  const Model model =
      model_in(R"({"attnscope": 1, "scale": "none", "given": {"scores": [[0, 1], [2, "-inf"]]}})");
  EXPECT_EQ(model.n_heads, 1u);
  EXPECT_EQ(attend(model).heads[0].weights(1, 1), 0);
}

TEST(SessionGiven, TakesABatch) {
  const Model model =
      model_in(R"({"attnscope": 1, "given": {"weights": [[[[0.5]], [[0.25]]], [[[1]], [[0.125]]]]}})");
  ASSERT_EQ(model.sequences.size(), 2u);
  EXPECT_EQ(model.n_heads, 2u);
  EXPECT_EQ(attend(model, 1).heads[1].weights(0, 0), 0.125);
}

TEST(SessionGiven, TakesFewerQueriesThanKeys) {
  const Model model = model_in(R"({"attnscope": 1, "tokens": ["c"], "key_tokens": ["a", "b", "c"],
    "given": {"queries": [[[1, 2]]], "keys": [[[1, 0], [0, 1], [1, 1]]]}})");
  EXPECT_EQ(model.n_tokens(), 1u);
  EXPECT_EQ(model.sequences[0].keys()[1], "b");
  EXPECT_EQ(attend(model).heads[0].scores(0, 2), 3);
}

TEST(SessionGiven, TypesSingleCellsOver) {
  const Model model = model_in(R"({"attnscope": 1, "embeddings": [[1, 0], [0, 1]],
    "given": {"cells": [{"stage": "scores", "head": 0, "row": 1, "column": 0, "value": 2.5}]}})");
  EXPECT_EQ(attend(model).heads[0].scores(1, 0), 2.5);
}

TEST(SessionGiven, NamesWhatIsWrong) {
  EXPECT_EQ(error_in_given(R"({"attnscope": 1})"), "s.json: expected the key \"embeddings\", got none");
  EXPECT_EQ(
      error_in_given(R"({"attnscope": 1, "given": {"weigths": [[1]]}})"),
      "s.json: given: expected only the keys queries, keys, values, scores, scaled_scores, masked_scores, weights, "
      "dropout_mask, cells, got \"weigths\"; did you mean \"weights\"?");
  EXPECT_EQ(error_in_given(R"({"attnscope": 1, "given": {"weights": [[[1, 0], [0.5, "half"]]]}})"),
            "s.json: given.weights[0][1][1]: expected a number, \"inf\", \"-inf\" or \"nan\", got \"half\"");
  EXPECT_EQ(error_in_given(R"({"attnscope": 1, "given": {"keys": [[[1]]], "queries": [[[1]], [[1]]]}})"),
            "s.json: given.keys: expected 2 matrices, one for each head, got 1");
  EXPECT_EQ(error_in_given(R"({"attnscope": 1, "given": {"scores": [[[1]]]}})"),
            "s.json: scale: expected \"none\" or a number, as what is given does not tell d_head");
  EXPECT_EQ(
      error_in_given(
          R"({"attnscope": 1, "embeddings": [[1]], "given": {"cells": [{"stage": "scores", "row": 0, "column": 1, "value": 1}]}})"),
      "s.json: given.cells[0]: expected a cell of 1 sequences, 1 heads, 1×1 scores, got sequence 0, head 0, row 0, column 1");
  EXPECT_THAT(error_in_given(R"({"attnscope": 1, "embeddings": [[1]], "given": {"cells": [
    {"stage": "scores", "row": 0, "column": 0, "value": 1}, {"stage": "scores", "row": 0, "column": 0, "value": 2}]}})"),
              HasSubstr("expected each cell once, got scores [0, 0] of head 0 twice"));
  EXPECT_EQ(error_in_given(R"({"attnscope": 1, "embeddings": [[1]], "heads_off": [1]})"),
            "s.json: heads_off[0]: expected a head below 1, got 1");
}

TEST(SessionGiven, ReadsBackWhatItWrites) {
  support::Random random(31);
  std::size_t n_given = 0;
  for (int k = 0; k < 300; ++k) {
    Model model = explain::any_model(random);
    if (model.scale.rule != ScaleRule::factor) model.scale.factor = 1;
    n_given += !model.given.empty();
    const std::string text = session_text({model, ""});
    EXPECT_EQ(model_in(text), model) << text;
  }
  EXPECT_GT(n_given, 50u);
}

TEST(SessionGiven, ReadsBackInfinitiesAndOtherKeys) {
  Model model = model_of({{weights, {arma::mat{{1, NAN, INFINITY}, {-INFINITY, 0, -0.0}}}}});
  model.sequences[0].key_tokens = {"x", "y", "\"z\""};
  EXPECT_EQ(model_in(session_text({model, ""})), model);
}

}  // namespace
}  // namespace core::formats
