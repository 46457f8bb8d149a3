#include <gtest/gtest.h>

#include "core/files/session.hpp"
#include "tests/support/error_of.hpp"

namespace core::formats {
namespace {

struct Case {
  const char* members;  ///< of the session, besides the version
  const char* error;    ///< after the name of the file
};

std::string error_in_session(const std::string& text) {
  return support::error_of([&] { parse_session(text, "f.json"); });
}

void expect_errors(std::initializer_list<Case> cases, const char* other_members = "") {
  for (const Case& c : cases)
    EXPECT_EQ(error_in_session(std::string("{\"attnscope\": 1, ") + other_members + c.members + "}"),
              std::string("f.json: ") + c.error);
}

void expect_errors_in_small(std::initializer_list<Case> cases) {
  expect_errors(cases, R"("embeddings": [[1, 2], [3, 4]], )");
}

TEST(SessionError, NamesTheVersion) {
  EXPECT_EQ(error_in_session("[]"), "f.json: expected an object, got an empty list");
  EXPECT_EQ(error_in_session(R"({"attnscope": 1})"), "f.json: expected the key \"embeddings\", got none");
  EXPECT_EQ(error_in_session("{}"), "f.json: expected the key \"attnscope\", got none");
  EXPECT_EQ(error_in_session(R"({"attnscope": 2})"),
            "f.json: attnscope: expected version 1 of the session file, got 2");
  EXPECT_EQ(error_in_session(R"({"attnscope": "1"})"),
            "f.json: attnscope: expected a whole number from 0 to 18446744073709551615, got \"1\"");
}

TEST(SessionError, NamesUnknownKeys) {
  expect_errors_in_small({
      {R"("scal": 1)",
       "expected only the keys attnscope, tokens, key_tokens, embeddings, key_embeddings, projections, n_heads, "
       "n_kv_heads, normalise, positions, scores, score_cap, score_bias, sink, scale, "
       "mask, dropout, merge_heads, context_length, departures, mistakes, given, heads_off, left_out, assumed, view, got \"scal\"; did you mean \"scale\"?"},
      {R"("mask": {"hidden": 1})",
       "mask: expected only the keys causal, method, empty_rows, cells, align, window, prefix, documents, hidden_keys, got \"hidden\""},
      {R"("projections": {"qwery": 1})",
       "projections: expected only the keys query, key, value, output, got \"qwery\"; did you mean "
       "\"query\"?"},
      {R"("dropout": {"p": 1})",
       "dropout: expected only the keys rate, training, seed, stream, rescale, mask, got \"p\""},
  });
}

TEST(SessionError, NamesTheShapeOfEmbeddingsAndTokens) {
  expect_errors({
      {R"("tokens": ["a"])", "expected the key \"embeddings\", got none"},
      {R"("embeddings": [])", "embeddings: expected a list of rows of numbers, got an empty list"},
      {R"("embeddings": [1])", "embeddings[0]: expected a row of numbers, got 1"},
      {R"("embeddings": [[]])", "embeddings[0]: expected a row of numbers, got an empty list"},
      {R"("embeddings": [[1, 2], [3]])", "embeddings[1]: expected 2 numbers as in the first row, got 1"},
      {R"("embeddings": [[1, 2], [3, "4"]])", "embeddings[1][1]: expected a number, got \"4\""},
      {R"("embeddings": [[[1]], [[1, 2]]])", "embeddings[1]: expected 1×1 (as the first sequence), got 1×2"},
      {R"("embeddings": [[[1], [2]], [[1], null]])", "embeddings[1][1]: expected a row of numbers, got null"},
      {R"("embeddings": [[1]], "tokens": ["a", "b"])",
       "tokens: expected 1 tokens, one for each row of the embeddings, got 2"},
      {R"("embeddings": [[1]], "tokens": [1])", "tokens[0]: expected a string, got 1"},
      {R"("embeddings": [[1]], "tokens": [["a"]])", "tokens[0]: expected a string, got a list of 1"},
      {R"("embeddings": [[[1]], [[2]]], "tokens": [["a"]])",
       "tokens: expected 2 lists of tokens, one for each sequence, got 1"},
      {R"("embeddings": [[[1]], [[2]]], "tokens": [["a"], ["b", "c"]])",
       "tokens[1]: expected 1 tokens, one for each row of the embeddings, got 2"},
  });
}

TEST(SessionError, NamesTheShapeOfProjections) {
  const std::string linear = R"({"weight": [[1, 2], [3, 4]]})";
  const std::string head =
      R"("embeddings": [[1, 2]], "projections": {"query": )" + linear + R"(, "value": )" + linear;
  const std::string ragged = head + R"(, "key": {"weight": [[1, 2], [3]]}})";
  const std::string narrow = head + R"(, "key": {"weight": [[1], [3]]}})";
  const std::string bias = head + R"(, "key": {"weight": [[1, 2], [3, 4]], "bias": [1, 2, 3]}})";
  const std::string text = head + R"(, "key": {"weight": [[1, 2], [3, "x"]]}})";
  const std::string missing = head + "}";
  const std::string square = head + R"(, "key": )" + linear + R"(, "output": {"weight": [[1, 2]]}})";
  expect_errors({
      {ragged.c_str(), "projections.key.weight[1]: expected 2 numbers as in the first row, got 1"},
      {narrow.c_str(),
       "projections.key.weight: expected 2×2 (d_in × d_out, as the embeddings and the query projection have "
       "it), got 2×1"},
      {bias.c_str(),
       "projections.key.bias: expected 1×2 (one number for each column of the weight), got 1×3"},
      {text.c_str(), "projections.key.weight[1][1]: expected a number, got \"x\""},
      {missing.c_str(), "projections: expected the key \"key\", got none"},
      {square.c_str(), "projections.output.weight: expected 2×2 (d_out rows), got 1×2"},
  });
}

TEST(SessionError, NamesHeadsScaleAndContextLength) {
  expect_errors_in_small({
      {R"("n_heads": 0)", "n_heads: expected a whole number from 1 to 18446744073709551615, got 0"},
      {R"("n_heads": -1)", "n_heads: expected a whole number from 1 to 18446744073709551615, got -1"},
      {R"("n_heads": 1.5)", "n_heads: expected a whole number from 1 to 18446744073709551615, got 1.5"},
      {R"("n_heads": 3)", "n_heads: expected a number of heads that divides d_out = 2, got 3"},
      {R"("scores": "dot")", "scores: expected one of \"query_key\", \"uniform\", got \"dot\""},
      {R"("scale": "sqrt")",
       "scale: expected one of \"inverse_sqrt_d_head\", \"none\", \"inverse_sqrt_d_model\" or a number, got "
       "\"sqrt\""},
      {R"("merge_heads": null)",
       "merge_heads: expected one of \"concatenate\", \"reshape_without_transpose\", got null"},
      {R"("context_length": 1)", "context_length: expected at most 1 tokens (context_length), got 2"},
      {R"("view": [1])", "view: expected an object, got a list of 1"},
  });
}

TEST(SessionError, NamesWhatIsWrongInTheMask) {
  expect_errors_in_small({
      {R"("mask": true)", "mask: expected an object, got true"},
      {R"("mask": {"causal": 1})", "mask.causal: expected true or false, got 1"},
      {R"("mask": {"cells": [[0, 1]]})", "mask.cells[0]: expected [row, column, visible], got a list of 2"},
      {R"("mask": {"cells": [[0, 1, 1]]})", "mask.cells[0][2]: expected true or false, got 1"},
      {R"("mask": {"cells": [[1, 0, true], [0, 1, true], [1, 0, false]]})",
       "mask.cells: expected each cell once, got [1, 0] twice"},
      {R"("mask": {"window": [9223372036854775808, 0]})",
       "mask.window: expected at most 2147483648 keys to a side, or no limit, got 9223372036854775808"},
      {R"("mask": {"window": [0, 9223372036854775807]})",
       "mask.window: expected at most 2147483648 keys to a side, or no limit, got 9223372036854775807"},
      {R"("mask": {"cells": [[0, 2, true]]})",
       "mask.cells[0]: expected a row and a column below 2, got 0 and 2"},
  });
}

TEST(SessionError, NamesWhatIsWrongInDropout) {
  expect_errors_in_small({
      {R"("dropout": {"rate": 1.5})", "dropout.rate: expected a number from 0 to 1, got 1.5"},
      {R"("dropout": {"seed": 1e3})",
       "dropout.seed: expected a whole number from 0 to 18446744073709551615, got 1000"},
      {R"("dropout": {"seed": 18446744073709551616})",
       "dropout.seed: expected a whole number from 0 to 18446744073709551615, got 18446744073709551616"},
      {R"("dropout": {"stream": "cuda"})",
       "dropout.stream: expected one of \"mt19937\", \"mkl\", got \"cuda\""},
      {R"("dropout": {"mask": [[[1, 0], [1, 1]], [[1, 0], [1, 1]]]})",
       "dropout.mask: expected 1 matrices, one for each head, got 2"},
      {R"("dropout": {"mask": [[[1, 0], [1, 2]]]})",
       "dropout.mask[0][1][1]: expected 0 (dropped) or 1 (kept)"},
      {R"("dropout": {"mask": [[[1]]]})", "dropout.mask[0]: expected 2×2 (n_tokens × n_keys), got 1×1"},
  });
  expect_errors({{R"("embeddings": [[[1]], [[2]]], "dropout": {"mask": [[[[1]]]]})",
                  "dropout.mask: expected 2 lists of matrices, one for each sequence, got 1"}});
}

TEST(SessionError, DoesNotTrustTheLengthOfTheFirstRow) {
  // A first row of 10⁵ numbers and 10⁵ rows would be 75 GiB.
  std::string text = R"({"attnscope": 1, "embeddings": [[0)";
  for (int k = 1; k < 100'000; ++k) text += ",0";
  text += "]";
  for (int k = 1; k < 100'000; ++k) text += ",[0]";
  EXPECT_EQ(error_in_session(text + "]}"),
            "f.json: embeddings[1]: expected 100000 numbers as in the first row, got 1");
}

TEST(SessionError, NamesWhatIsWrongInGivenStages) {
  expect_errors({
      {R"("given": {"weigths": [[1]]})",
       "given: expected only the keys queries, keys, values, scores, scaled_scores, masked_scores, weights, "
       "dropout_mask, cells, got \"weigths\"; did you mean \"weights\"?"},
      {R"("given": {"weights": [[[1, 0], [0.5, "half"]]]})",
       "given.weights[0][1][1]: expected a number, \"inf\", \"-inf\" or \"nan\", got \"half\""},
      {R"("given": {"keys": [[[1]]], "queries": [[[1]], [[1]]]})",
       "given.keys: expected 2 matrices, one for each head, got 1"},
      {R"("given": {"scores": [[[1]]]})",
       "scale: expected \"none\" or a number, as what is given does not tell d_head"},
      {R"("embeddings": [[1]], "given": {"cells": [{"stage": "scores", "row": 0, "column": 1, "value": 1}]})",
       "given.cells[0]: expected a cell of 1 sequences, 1 heads, 1×1 scores, got sequence 0, head 0, row 0, column 1"},
      {R"("embeddings": [[1]], "given": {"cells": [
    {"stage": "scores", "row": 0, "column": 0, "value": 1}, {"stage": "scores", "row": 0, "column": 0, "value": 2}]})",
       "given.cells: expected each cell once, got scores [0, 0] of head 0 twice"},
      {R"("embeddings": [[1]], "heads_off": [1])", "heads_off[0]: expected a head below 1, got 1"},
  });
}

std::string listed(std::size_t n, const std::string& item) {
  std::string text = "[" + item;
  for (std::size_t k = 1; k < n; ++k) text += "," + item;
  return text + "]";
}

TEST(SessionError, CountsWhatEverySequenceWouldTakeBeforeItDoes) {
  const std::string ones = R"("embeddings": )" + listed(16384, "[[1]]");
  const std::string one = R"("embeddings": [[1]])";
  const auto error = [](const std::string& members) {
    return error_in_session("{\"attnscope\": 1, " + members + "}");
  };
  EXPECT_EQ(error(R"("embeddings": )" + listed(16385, "[[1]]")),
            "f.json: embeddings: expected at most 16384 sequences, got 16385");
  EXPECT_EQ(error(R"("embeddings": )" + listed(16385, "[1]")),
            "f.json: embeddings: expected at most 16384 tokens, got 16385");
  EXPECT_EQ(error(ones + R"(, "tokens": )" + listed(16384, "\"a\"")),
            "f.json: tokens: expected 1 tokens, one for each row of the embeddings, got 16384");
  EXPECT_EQ(error(ones + R"(, "key_tokens": )" + listed(16384, "\"a\"")),
            "f.json: key_tokens: expected 1 tokens, one for each key, got 16384");
  EXPECT_EQ(error(ones + R"(, "tokens": [")" + std::string(1 << 20, 'a') + "\"]"),
            "f.json: tokens: expected names of at most 1.0 GiB, got 16.0 GiB");
  EXPECT_EQ(error(ones + R"(, "mask": {"hidden_keys": )" + listed(16384, "0") + "}"),
            "f.json: mask.hidden_keys: expected at most 1 keys, as many as there are, got 16384");
  EXPECT_EQ(error(R"("given": {"weights": )" + listed(16385, "[[[1]]]") + "}"),
            "f.json: given.weights: expected at most 16384 sequences, got 16385");
  EXPECT_EQ(error(R"("given": {"weights": )" + listed(16385, "[[1]]") + "}"),
            "f.json: given.weights: expected at most 16384 heads, got 16385");
  EXPECT_EQ(error(ones + R"(, "key_embeddings": )" + listed(16385, "[1]")),
            "f.json: key_embeddings: expected at most 16384 keys, got 16385");
  const std::string memory = ones + R"(, "key_embeddings": )" + listed(16384, "[1]");
  EXPECT_EQ(error(memory), "f.json: expected names of at most 1.0 GiB, got 9.1 GiB");
  EXPECT_EQ(error(memory + R"(, "key_tokens": )" + listed(16384, "\"a\"")),
            "f.json: key_tokens: expected names of at most 1.0 GiB, got 8.3 GiB");
  EXPECT_EQ(error(one + R"(, "n_heads": 16385)"), "f.json: n_heads: expected at most 16384 heads, got 16385");
}

}  // namespace
}  // namespace core::formats
