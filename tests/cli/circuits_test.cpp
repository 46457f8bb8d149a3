// Figures are compared in tests/python/check_circuits.py.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>

#include "tests/cli/run_program.hpp"
#include "tests/support/temporary_directory.hpp"

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
  EXPECT_THAT(outcome.out, testing::StartsWith("head 2.0, query 13 ' f', key 6 'ig'\n"
                                               "score 8.5662 = row mean 1.7453 + 6.8209, weight 0.9695\n"
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

TEST(Circuits, ExplainSumsOfRowsAndLogits) {
  const auto of = [](std::vector<std::string> options) {
    options.insert(options.begin(), {"why", tiny_gpt, "--text", clean});
    const Outcome outcome = run(options);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return outcome.out;
  };
  EXPECT_THAT(of({"--token", "ig"}), testing::StartsWith("logit of 'ig' "));
  EXPECT_THAT(of({"--token", "ig"}), testing::HasSubstr("\nhead 2.0\t6 'ig'\t"));
  EXPECT_THAT(of({"--layer", "2", "--head", "0", "--query", "13"}),
              testing::HasSubstr("length of the context vector of 13 ' f' "));
  EXPECT_THAT(of({"--layer", "2", "--head", "0", "--query", "13"}), testing::HasSubstr("direct\n6 'ig'\t"));
  EXPECT_THAT(of({"--layer", "4", "--query", "13"}), testing::HasSubstr("\nhead 3.3\t"));
  EXPECT_EQ(run({"why", tiny_gpt, "--text", clean, "--layer", "2"}).status, 2);
  EXPECT_EQ(run({"why", tiny_gpt, "--text", clean, "--token", "ig", "--head", "0"}).err,
            "attnscope: why: --token: expected without --layer, --head, --query and --key\n");
}

TEST(Circuits, PatchOnePositionOrPathAndWriteTheMap) {
  const support::TemporaryDirectory folder;
  const auto with = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"patch", tiny_gpt, "--clean", clean, "--corrupt", corrupt, "--answer",
                                     "ig", "--against", "ood"});
    return run(options);
  };
  EXPECT_THAT(with({"--positions"}).out, testing::HasSubstr("\nhead\t0\t1\t2\t"));
  EXPECT_THAT(with({"--positions"}).out, testing::HasSubstr("\n2.0\t"));
  const Outcome path = with({"--through", "keys:2.0"});
  EXPECT_EQ(std::count(path.out.begin(), path.out.end(), '\n'), 4);  // of two layers before it
  EXPECT_EQ(with({"--through", "mlp:2.0"}).err,
            "attnscope: through: expected queries, keys or values of a head\n");
  for (const std::string name : {"map.csv", "map.npz", "map.svg", "map.png"}) {
    EXPECT_EQ(with({"--out", folder.path() / name}).err, "");
    EXPECT_GT(std::filesystem::file_size(folder.path() / name), 100u) << name;
  }
  EXPECT_THAT(support::bytes_of(folder.path() / "map.csv"), testing::StartsWith(",0,1,2,3\r\nlayer 0,"));
  EXPECT_EQ(with({"--out", "map.txt"}).err,
            "attnscope: map.txt: expected a name that ends with .csv, .npy, .npz, .svg, .pdf or .png\n");
}

TEST(Circuits, PatchTwoPrompts) {
  const Outcome outcome = patch(corrupt, "ig");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, testing::StartsWith("clean 6.5390, corrupt -13.7287\nlayer\t0\t1\t2\t3\n0\t"));
  expect_line(patch(corrupt, "egg"), "--answer: expected one token, got 3: 'e', 'g', 'g'");
  expect_line(patch(corrupt, "ig", "ig"), "against: expected another token than the answer, got the same");
  expect_line(patch(clean, "ig"),
              "corrupt prompt: expected other tokens than those of the clean one, got the same");
  EXPECT_THAT(patch("egg jam food and and egg jam f", "ig").out,
              testing::StartsWith("clean 6.5390, corrupt "));
  expect_line(run({"patch", tiny_gpt, "--clean", clean, "--corrupt", corrupt, "--answer", "ig", "--against",
                   "ood", "--align", "0:0,1:0"}),
              "align: expected positions in order, below 14 and 14, got 1:0");
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

TEST(Circuits, ListPairsOfTokensOfAHead) {
  const Outcome outcome = run({"composition", tiny_gpt, "--head", "2.0", "--top", "5"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, testing::StartsWith("circuit\tfrom\tto\tvalue\nov\t'"));
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 11);
  expect_line(run({"composition", tiny_gpt, "--head", "4.0"}), "layer: expected a layer below 4, got 4");
}

}  // namespace
}  // namespace cli::circuits
