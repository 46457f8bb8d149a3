// Figures are compared in tests/python/check_circuits.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include "tests/cli/run_program.hpp"

namespace cli::circuits {
namespace {

const std::string tiny_gpt = FIXTURES "/../../assets/examples/tiny_gpt";
const std::string clean = "egg jam fig and egg jam f", corrupt = "egg jam food and egg jam f";

Outcome why(const std::string& layer, const std::string& head, const std::string& query,
            const std::string& key, const std::string& text = clean) {
  return run(
      {"why", tiny_gpt, "--text", text, "--layer", layer, "--head", head, "--query", query, "--key", key});
}

Outcome patch(const std::string& other, const std::string& answer, const std::string& against = "ood",
              const std::string& model = tiny_gpt) {
  return run(
      {"patch", model, "--clean", clean, "--corrupt", other, "--answer", answer, "--against", against});
}

void expect_line(const Outcome& outcome, const std::string& line) {
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.err, "attnscope: " + line + "\n");
  EXPECT_EQ(outcome.out, "");
}

TEST(Circuits, ExplainAScoreInATable) {
  const Outcome outcome = why("2", "0", "13", "6");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, testing::StartsWith("score 8.5662 = row mean 1.7453 + 6.8209, weight 0.9695\n"
                                               "query part\tkey part\tabove row mean\tdirect\n"
                                               "MLP 0\tMLP 0\t"));
  EXPECT_THAT(outcome.out, testing::HasSubstr("\n215 other pairs\t"));
  EXPECT_THAT(outcome.out, testing::HasSubstr("\nhead 0.2\t5.0228\t0.141"));
}

TEST(Circuits, RefuseCellsInOneLine) {
  expect_line(why("4", "0", "1", "0"), "layer: expected a layer below 4, got 4");
  expect_line(why("1", "4", "1", "0"), "head: expected a head below 4, got 4");
  expect_line(why("1", "0", "14", "0"), "query: expected a position below 14, got 14");
  expect_line(why("1", "0", "3", "4"), "key: expected one that query 3 attends to, from 0 to 3, got 4");
  EXPECT_EQ(why("1", "0", "-1", "0").status, 2);
  EXPECT_EQ(why("1", "0", "0", "0", "").status, 2);
  expect_line(
      run({"why", "127.0.0.1:1", "--text", "a", "--layer", "0", "--head", "0", "--query", "0", "--key", "0"}),
      "127.0.0.1:1: expected a model in a file or a folder, got an attached one");
}

TEST(Circuits, PatchTwoPrompts) {
  const Outcome outcome = patch(corrupt, "ig");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, testing::StartsWith("clean 6.5390, corrupt -13.7287\nlayer\t0\t1\t2\t3\n0\t"));
  expect_line(patch(corrupt, "egg"), "--answer: expected one token, got 3: 'e', 'g', 'g'");
  expect_line(patch(corrupt, "ig", "ig"), "against: expected another token than the answer, got the same");
  expect_line(patch(clean, "ig"),
              "corrupt prompt: expected other tokens than those of the clean one, got the same");
  expect_line(patch("egg jam", "ig"), "corrupt prompt: expected as many tokens as the clean one, 14, got 5");
  const Outcome unknown = run({"patch", tiny_gpt, "--clean", clean, "--corrupt", corrupt, "--answer", "ig",
                               "--against", "ood", "--what", "neurons"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.err, testing::HasSubstr("--what: expected one of head, pattern, queries, keys, values, "
                                              "attention, mlp, residual, got \"neurons\""));
}

TEST(Circuits, PatchNothingInAModelThatPredictsNothing) {
  const Outcome outcome = run({"patch", FIXTURES "/transformer/bert_headless", "--clean", "the ferry",
                               "--corrupt", "the captain", "--answer", "the", "--against", "and"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, testing::HasSubstr("bidirectional"));
}

TEST(Circuits, ListCompositionOfLaterLayers) {
  const Outcome outcome = run({"composition", tiny_gpt});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, testing::StartsWith("from,to,queries,keys,values\r\n0.0,1.0,0."));
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 1 + 16 * 6);
}

}  // namespace
}  // namespace cli::circuits
