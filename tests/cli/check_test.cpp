#include <gtest/gtest.h>

#include <algorithm>

#include "tests/cli/run_program.hpp"

namespace cli {
namespace {

using support::TemporaryDirectory;

std::string fixture(const char* name) {
  return std::string(FIXTURES) + "/check/" + name;
}

TEST(CheckCommand, AgreesWithItsOwnExport) {
  const TemporaryDirectory dir;
  for (const char* format : {"csv", "npy", "npz"}) {
    const std::string path = (dir / format).string();
    ASSERT_EQ(run({"export", fixture("full.json"), "--out", path, "--format", format}).status, 0);
    const Outcome outcome = run({"check", fixture("full.json"), "--against", path, "--json"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_TRUE(outcome.out.starts_with("{\"agrees\": true, \"first_difference\": null, \"causes\": []"))
        << outcome.out;
  }
}

TEST(CheckCommand, FindsEveryMistakeThatExportMakes) {
  const TemporaryDirectory dir;
  for (const char* mistake : {"no_scale", "mask_shows_next", "softmax_over_queries", "heads_interleaved",
                              "weight_untransposed:key", "merge_without_transpose"}) {
    const std::string path = (dir / mistake).string();
    ASSERT_EQ(run({"export", fixture("full.json"), "--mistake", mistake, "--out", path, "--stages",
                   "scores,weights,output"})
                  .status,
              0);
    const Outcome outcome = run({"check", fixture("full.json"), "--against", path, "--json"});
    EXPECT_EQ(outcome.status, 1);
    EXPECT_NE(outcome.out.find(std::string("\"causes\": [\"") + mistake + "\"]"), outcome.out.npos)
        << outcome.out;
  }
}

TEST(CheckCommand, TellsPeopleWhatToChange) {
  const TemporaryDirectory dir;
  const std::string path = (dir / "D").string();
  run({"export", fixture("full.json"), "--mistake", "no_scale", "--out", path, "--stages",
       "scaled_scores,weights"});
  const Outcome outcome = run({"check", fixture("full.json"), "--against", path});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(
      outcome.out.find("First stage that differs: scaled_scores.\nLikely cause: no_scale, which explains "
                       "every tensor.\n  no_scale: The scores are not divided by √d_head. Divide"),
      outcome.out.npos)
      << outcome.out;
}

TEST(CheckCommand, SaysInOneLineWhatCannotBeRead) {
  const Outcome outcome = run({"check", fixture("full.json"), "--against", "/nowhere"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1);
  EXPECT_NE(outcome.err.find("/nowhere"), outcome.err.npos);
}

TEST(CheckCommand, SaysInOneLineWhereALinkLeadsToItself) {
  const TemporaryDirectory dir;
  const std::string loop = (dir / "loop").string();
  std::filesystem::create_symlink("loop", loop);
  const Outcome outcome = run({"check", fixture("full.json"), "--against", loop});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_TRUE(outcome.err.starts_with("attnscope: " + loop + ": not readable: ")) << outcome.err;
  const Outcome given =
      run({"session", "--given", "weights=" + loop + ":a", "--out", (dir / "s.json").string()});
  EXPECT_EQ(given.status, 1);
  EXPECT_TRUE(given.err.starts_with("attnscope: " + loop + ": not readable: ")) << given.err;
}

TEST(MistakesCommand, ListsNamesAndWhatTheyAre) {
  const Outcome outcome = run({"mistakes"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_NE(("\n" + outcome.out).find("\nno_scale\tThe scores are not divided by √d_head.\n"),
            outcome.out.npos);
}

TEST(MistakesCommand, RefusesAMistakeThatCannotBeMade) {
  const TemporaryDirectory dir;
  const Outcome outcome =
      run({"export", fixture("plain.json"), "--mistake", "heads_interleaved", "--out", (dir / "D").string()});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.err, "attnscope: --mistake heads_interleaved: cannot be made in this model\n");
}

}  // namespace
}  // namespace cli
