#include <gtest/gtest.h>

#include <cmath>

#include "core/files/session.hpp"
#include "core/graph/attend.hpp"
#include "core/graph/given_model.hpp"
#include "tests/core/graph/any_model.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/random_model.hpp"
#include "tests/support/temporary_directory.hpp"

namespace core::formats {
namespace {

using namespace attention;
using enum Stage;

/// Returns a model with random options and all kinds of finite numbers and tokens.
Model odd_model(support::Random& random) {
  Model m = explain::any_model(random);
  if (m.scale.rule != ScaleRule::factor) m.scale.factor = 1;  // not stored in a session
  const double numbers[] = {0.0, -0.0, 1, 5e-324, -1.7976931348623157e308, 0.1f};
  const char* words[] = {"", "a", "\"q\"", "\\", "two\nlines", "é漢🙂", "\x01"};
  for (Sequence& s : m.sequences) {
    if (s.embeddings->n_elem > 0) s.embeddings.edit()(0, 0) = numbers[support::below(random, 6)];
    for (std::string& token : s.tokens) token = words[support::below(random, 7)];
  }
  if (support::coin(random)) m.context_length = m.n_tokens() + support::below(random, 5);
  return m;
}

TEST(Session, ReadsBackEveryOptionAndEveryBit) {
  support::Random random(7);
  std::size_t n_given = 0;
  for (int k = 0; k < 500; ++k) {
    Session session{odd_model(random), k % 2 == 0 ? "" : R"({"head": 1, "zoom": [0.5, -0]})"};
    if (k % 3 == 0) session.left_out = {"rotary positions", "\"a cap\""}, session.assumed = {"1 head"};
    const std::string text = session_text(session);
    const Session back = parse_session(text, "f.json");
    EXPECT_EQ(back.left_out, session.left_out);
    EXPECT_EQ(back.assumed, session.assumed);
    ASSERT_TRUE(back.model == session.model) << text;
    ASSERT_EQ(back.view, session.view);
    ASSERT_EQ(session_text(back), text);
    n_given += !session.model.given.empty();
  }
  EXPECT_GT(n_given, 50u);
}

TEST(Session, IsWrittenForPeopleToRead) {
  Model m;
  m.sequences = {{{"Your", "journey"}, arma::mat{{0.5, -1}, {2, 0.25}}}};
  Projections p;
  p.query.weight = p.key.weight = p.value.weight = arma::vec{1, 0};
  p.key.bias = arma::vec{3};
  m.projections = p;
  m.mask.cells = {{0, 1, true}, {1, 0, false}};
  EXPECT_EQ(session_text({m, ""}), R"({
  "attnscope": 1,
  "tokens": ["Your", "journey"],
  "embeddings": [
    [0.5, -1],
    [2, 0.25]
  ],
  "projections": {
    "query": {
      "weight": [
        [1],
        [0]
      ],
      "bias": null
    },
    "key": {
      "weight": [
        [1],
        [0]
      ],
      "bias": [3]
    },
    "value": {
      "weight": [
        [1],
        [0]
      ],
      "bias": null
    },
    "output": null
  },
  "n_heads": 1,
  "scores": "query_key",
  "scale": "inverse_sqrt_d_head",
  "mask": {"causal": true, "method": "negative_infinity", "empty_rows": "nan", "cells": [[0, 1, true], [1, 0, false]]},
  "dropout": {"rate": 0, "training": true, "seed": 123, "stream": "mt19937"},
  "merge_heads": "concatenate",
  "context_length": null
}
)");
}

TEST(Session, HasTheDefaultsOfTheModelForAbsentKeys) {
  Model expected;
  expected.sequences = {{{"0", "1"}, arma::mat{{1, 2}, {3, 4}}}};
  EXPECT_TRUE(parse_session(R"({"attnscope": 1, "embeddings": [[1, 2], [3, 4]]})", "f").model == expected);
  EXPECT_TRUE(
      parse_session(R"({"attnscope": 1, "embeddings": [[1, 2], [3, 4]], "mask": {}, "dropout": {}})", "f")
          .model == expected);
}

TEST(Session, SortsTheCellsOfTheMask) {
  const Session s = parse_session(
      R"({"attnscope": 1, "embeddings": [[1], [2]], "mask": {"cells": [[1, 1, true], [1, 0, false], [0, 1, true]]}})",
      "f");
  EXPECT_EQ(s.model.mask.cells, (std::vector<MaskCell>{{0, 1, true}, {1, 0, false}, {1, 1, true}}));
}

TEST(Session, OfAModelThatCannotBeComputedIsNotWritten) {
  Model m;
  m.sequences = {{{"a"}, arma::vec{NAN}}};
  EXPECT_EQ(support::error_of([&] { session_text({m, ""}); }), "embeddings[0][0]: expected a finite number");
}

TEST(Session, IsSavedAndLoaded) {
  const support::TemporaryDirectory dir;
  Model m;
  m.sequences = {{{"a"}, arma::mat{{-0.0, 0.1}}}};
  save_session(dir / "s.json", {m, ""});
  EXPECT_TRUE(load_session(dir / "s.json").model == m);
  EXPECT_EQ(dir.names(), (std::set<std::string>{"s.json"}));
}

// A truncated session, or one with a flipped bit, must be read or refused.
TEST(Session, SurvivesDamage) {
  support::Random random(3);
  for (int k = 0; k < 5; ++k) {
    const std::string text = session_text({odd_model(random), R"({"a": [1]})"});
    const std::size_t end = text.rfind('}');
    for (std::size_t length = 0; length <= end; ++length)
      ASSERT_NE(support::error_of([&] { parse_session(text.substr(0, length), "f"); }), "no error") << length;
    for (std::size_t at = 0; at < text.size(); ++at) {
      std::string damaged = text;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << support::below(random, 8)));
      const std::string error = support::error_of([&] { parse_session(damaged, "f"); });
      ASSERT_EQ(error.find('\n'), error.npos) << error;
    }
  }
}

TEST(Session, IsNeverWrittenLongerThanItIsRead) {
  const char* text = "";
  EXPECT_EQ(support::error_of([&] { check_session_size({text, 0}); }), "no error");
  EXPECT_EQ(support::error_of([&] { check_session_size({text, max_session_bytes}); }), "no error");
  EXPECT_EQ(
      support::error_of([&] {
        check_session_size({text, max_session_bytes + 1});
      }),
      "a session of more than 512 MiB, which could not be read again; numbers of that size can be exported "
      "as .npy or .npz");
}

Model model_in(const std::string& text) {
  return parse_session(text, "s.json").model;
}

TEST(SessionGiven, StartsFromWeightsAlone) {
  const Model model = model_in(R"({"attnscope": 1, "tokens": ["a", "b"],
    "given": {"weights": [[[1, 0], [0.25, 0.75]], [[0.5, 0.5], [0, 1]]]}})");
  EXPECT_EQ(model.n_heads, 2u);
  EXPECT_FALSE(model.has_embeddings());
  EXPECT_EQ(model.sequences[0].tokens, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(attend(model).at(Stage::weights, 0)(1, 0), 0.25);
}

TEST(SessionGiven, TakesOneHeadWithoutAListOfHeads) {
  const Model model =
      model_in(R"({"attnscope": 1, "scale": "none", "given": {"scores": [[0, 1], [2, "-inf"]]}})");
  EXPECT_EQ(model.n_heads, 1u);
  EXPECT_EQ(attend(model).at(Stage::weights, 0)(1, 1), 0);
}

TEST(SessionGiven, TakesABatch) {
  const Model model =
      model_in(R"({"attnscope": 1, "given": {"weights": [[[[0.5]], [[0.25]]], [[[1]], [[0.125]]]]}})");
  ASSERT_EQ(model.sequences.size(), 2u);
  EXPECT_EQ(model.n_heads, 2u);
  EXPECT_EQ(attend(model, 1).at(Stage::weights, 1)(0, 0), 0.125);
}

TEST(SessionGiven, TakesFewerQueriesThanKeys) {
  const Model model = model_in(R"({"attnscope": 1, "tokens": ["c"], "key_tokens": ["a", "b", "c"],
    "given": {"queries": [[[1, 2]]], "keys": [[[1, 0], [0, 1], [1, 1]]]}})");
  EXPECT_EQ(model.n_tokens(), 1u);
  EXPECT_EQ(model.sequences[0].keys()[1], "b");
  EXPECT_EQ(attend(model).at(Stage::scores, 0)(0, 2), 3);
}

TEST(SessionGiven, TypesSingleCellsOver) {
  const Model model = model_in(R"({"attnscope": 1, "embeddings": [[1, 0], [0, 1]],
    "given": {"cells": [{"stage": "scores", "head": 0, "row": 1, "column": 0, "value": 2.5}]}})");
  EXPECT_EQ(attend(model).at(Stage::scores, 0)(1, 0), 2.5);
}

TEST(SessionGiven, ReadsBackInfinitiesAndOtherKeys) {
  Model model = model_of({{weights, {arma::mat{{1, NAN, INFINITY}, {-INFINITY, 0, -0.0}}}}});
  model.sequences[0].key_tokens = {"x", "y", "\"z\""};
  EXPECT_EQ(model_in(session_text({model, ""})), model);
}

TEST(Session, OfAnOlderProgramKeepsItsMistakes) {
  const Model m = parse_session(R"({"attnscope": 1, "tokens": ["a", "b"], "embeddings": [[1, 2], [3, 4]],
      "departures": {"softmax_over": "queries", "scores_swapped": true, "split_heads": "interleaved",
                     "merge_heads": "interleaved", "keys_viewed": true, "query_offset": -2,
                     "blocks": {"rule": "sum_not_rescaled", "size": 3}, "turned_backwards": true,
                     "mask_diagonal": 1, "dropout_place": "masked_scores", "precision": "float16"}})",
                                "s.json")
                      .model;
  std::vector<std::pair<std::string, bugs::Numbers>> found;
  for (const bugs::BugCase& made : m.bugs) found.emplace_back(made.bug->name, made.numbers);
  const std::vector<std::pair<std::string, bugs::Numbers>> expected{
      {"heads_interleaved", {}},           {"view_without_transpose:key", {}},
      {"rotary_off_by_one:earlier", {-2}}, {"rotary_backwards", {}},
      {"query_key_swapped", {}},           {"softmax_over_queries", {}},
      {"heads_interleaved:combined", {}},  {"blocks_not_rescaled:sum", {3}}};
  EXPECT_EQ(found, expected);
  EXPECT_EQ(m.mask.edge.diagonal, 1);
  EXPECT_EQ(m.dropout.place, attention::DropoutPlace::masked_scores);
  EXPECT_EQ(m.arithmetic.precision, attention::Precision::float16);
}

}  // namespace
}  // namespace core::formats
