#include <gtest/gtest.h>

#include <algorithm>

#include "tests/cli/run_program.hpp"

namespace cli {
namespace {

using Names = std::set<std::string>;
using support::put_bytes;
using support::TemporaryDirectory;

/// The whole of standard error is this one line, and nothing was said on standard output.
void expect_failure(const Outcome& outcome, int status, const std::string& line) {
  EXPECT_EQ(outcome.status, status);
  EXPECT_EQ(outcome.err, "attnscope: " + line + "\n");
  EXPECT_EQ(outcome.out, "");
}

/// A session of two tokens with d_model 3; key_weight is JSON.
std::string session(const std::string& key_weight, const std::string& more) {
  const std::string weight = "[[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]]";
  return "{\"attnscope\": 1, \"embeddings\": [[1, 2, 3], [4, 5, 6]], \"projections\": {\"query\": "
         "{\"weight\": " +
         weight + "}, \"key\": {\"weight\": " + (key_weight.empty() ? weight : key_weight) +
         "}, \"value\": {\"weight\": " + weight + "}}" + more + "}";
}

TEST(Program, ListsPresetsWithoutADisplay) {
  const Outcome outcome = run({"presets"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.err, "");
  EXPECT_NE(("\n" + outcome.out).find("\nmulti-head\t"), outcome.out.npos);
}

TEST(Program, SaysItsVersion) {
  const Outcome outcome = run({"--version"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.out, "attnscope " ATTNSCOPE_VERSION "\n");
}

TEST(Program, ExportsASession) {
  const TemporaryDirectory dir;
  put_bytes(dir / "s.json",
            R"({"attnscope": 1, "tokens": ["a", "b"], "embeddings": [[0], [1]], "scale": 0})");
  const Outcome outcome =
      run({"export", (dir / "s.json").string(), "--out", (dir / "D").string(), "--stages", "weights"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.out + outcome.err, "");
  EXPECT_EQ(support::bytes_of(dir / "D/weights.head0.csv"), ",a,b\r\na,1,0\r\nb,0.5,0.5\r\n");
}

TEST(Program, RefusesBadSessionsInOneLine) {
  const std::string good = session("", "");
  const struct {
    std::string text, error;
  } cases[] = {
      {good.substr(0, good.size() / 2), "line 1, column " + std::to_string(good.size() / 2 + 1) +
                                            ": expected more JSON, got the end of the text"},
      {session("[[1, 2], [3, 4], [5, 6]]", ""),
       "projections.key.weight: expected 3×4 (d_in × d_out, as the embeddings and the query projection have "
       "it), got 3×2"},
      {session("", ", \"n_heads\": 3"), "n_heads: expected a number of heads that divides d_out = 4, got 3"},
      {session("", ", \"dropout\": {\"rate\": 1.5}"), "dropout.rate: expected a number from 0 to 1, got 1.5"},
  };
  const TemporaryDirectory dir;
  const std::string file = (dir / "s.json").string();
  for (const auto& c : cases) {
    put_bytes(file, c.text);
    expect_failure(run({"export", file, "--out", (dir / "D").string()}), 1, file + ": " + c.error);
    EXPECT_EQ(dir.names(), Names{"s.json"});
  }
}

TEST(Program, LeavesNothingWhereItCannotWrite) {
  const TemporaryDirectory dir;
  put_bytes(dir / "file", "");
  const std::string inside = (dir / "file/D").string(), missing = (dir / "no/s.json").string();
  expect_failure(run({"export", "--preset", "multi-head", "--out", inside}), 1,
                 inside + ": cannot be written: part of the path is not a directory");
  expect_failure(run({"session", "--preset", "multi-head", "--out", missing}), 1,
                 missing + ": cannot be written: no such file or directory");
  EXPECT_EQ(dir.names(), Names{"file"});
}

TEST(Program, NamesTheFileOnAFullDisk) {
  expect_failure(run({"session", "--preset", "multi-head", "--out", "/dev/full"}), 1,
                 "/dev/full: cannot be written: no space left on the disk");
  expect_failure(run({"presets"}, "/dev/full"), 1, "standard output: cannot be written");
}

TEST(Program, AnswersWrongUsageWithStatus2AndOneLine) {
  const TemporaryDirectory dir;
  const std::string out = (dir / "D").string();
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"--frob"},
                                             {"export"},
                                             {"export", "--preset", "nope", "--out", out},
                                             {"session", "--preset", "multi-head"},
                                             {"export", "a.json", "--preset", "multi-head", "--out", out},
                                             {"a.json", "b.json"}}) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, 2) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
  EXPECT_EQ(dir.names(), Names());
}

TEST(Program, SaysInOneLineThatThereIsNoDisplay) {
  const Outcome outcome = run({});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
}

}  // namespace
}  // namespace cli
