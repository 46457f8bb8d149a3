#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "core/files/tensor_formats.hpp"
#include "core/out/numpy.hpp"
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

TEST(CheckCommand, NamesTheNumberOfHeads) {
  const TemporaryDirectory dir;
  const std::string path = (dir / "D").string(), plain = fixture("rounded_plain.json");
  ASSERT_EQ(run({"export", plain, "--mistake", "n_heads_other", "--out", path}).status, 0);
  const Outcome outcome = run({"check", plain, "--against", path, "--json"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.out.find(R"("details": [["8 heads in place of 4"]])"), outcome.out.npos) << outcome.out;
}

TEST(CheckCommand, SaysWhereWhatNoCauseExplainsDiffers) {
  const TemporaryDirectory dir;
  const std::string path = (dir / "D").string();
  std::filesystem::create_directory(path);
  std::ofstream(path + "/output.csv")
      << "1,2,3,4,5,6\n1,2,3,4,5,6\n1,2,3,4,5,6\n1,2,3,4,5,6\n1,2,3,4,5,inf\n";
  const Outcome outcome = run({"check", fixture("full.json"), "--against", path, "--json"});
  EXPECT_EQ(outcome.status, 1) << outcome.err;
  EXPECT_NE(outcome.out.find("\"pattern\": null"), outcome.out.npos) << outcome.out;
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

void put_npy(const std::filesystem::path& path, const std::vector<std::size_t>& shape,
             const std::vector<double>& numbers) {
  std::string bytes = core::formats::npy_header(shape);
  core::formats::append_rows(bytes, arma::rowvec(numbers));
  support::put_bytes(path, bytes);
}

/// A case of a file of right tensors as a folder of its own.
std::string tensors_of(const TemporaryDirectory& dir, const char* model, const std::string& wanted) {
  const auto file = core::formats::open_tensors(fixture(model));
  const std::filesystem::path folder = dir / wanted;
  std::filesystem::create_directory(folder);
  for (const auto& info : file.tensors()) {
    if (!info.name.starts_with(wanted + "/")) continue;
    const auto tensor = file.read(info.name);
    put_npy(folder / (info.name.substr(wanted.size() + 1) + ".npy"), tensor.shape, tensor.numbers);
  }
  return folder.string();
}

TEST(CheckCommand, ReadsALayoutThatIsAskedForAndNoOther) {
  const TemporaryDirectory dir;
  const std::string path = tensors_of(dir, "layouts.npz", "right.bthd");
  const Outcome found = run({"check", fixture("layouts.json"), "--against", path});
  EXPECT_EQ(found.status, 0) << found.out << found.err;
  EXPECT_NE(found.out.find("[B, T, H, d]"), found.out.npos) << found.out;
  EXPECT_NE(
      found.out.find("Everything agrees: 5 tensors of 5 stages were compared; not given, and not compared: "
                     "embeddings, scores, "),
      found.out.npos)
      << found.out;
  EXPECT_EQ(run({"check", fixture("layouts.json"), "--against", path, "--layout", "bthd"}).status, 0);
  const Outcome other = run({"check", fixture("layouts.json"), "--against", path, "--layout", "bhtd"});
  EXPECT_EQ(other.status, 1);
  EXPECT_NE(other.out.find("got [1, 5, 2, 4]: heads after tokens? transpose, or say --layout bthd"),
            other.out.npos)
      << other.out;
}

TEST(CheckCommand, FailsOverShapesThatFitNothing) {
  const TemporaryDirectory dir;
  const std::string path = tensors_of(dir, "layouts.npz", "right.bhtd");
  put_npy(dir / "right.bhtd" / "attn_weights.npy", {3, 2}, {1, 2, 3, 4, 5, 6});
  const Outcome outcome = run({"check", fixture("layouts.json"), "--against", path, "--json"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.out.find("\"obstacle\": \"expected [2, 5, 5], got [3, 2]\""), outcome.out.npos)
      << outcome.out;
}

TEST(CheckCommand, ChoosesALayerOfTheTensors) {
  const TemporaryDirectory dir;
  tensors_of(dir, "layouts.npz", "no_scale.bhtd");
  tensors_of(dir, "layouts.npz", "right.bhtd");
  std::filesystem::create_directory(dir / "dump");
  for (const char* name : {"queries", "weights"}) {
    const std::string file = std::string(name) + ".npy";
    std::filesystem::copy(dir / "no_scale.bhtd" / file, dir / "dump" / ("layers.0." + file));
    std::filesystem::copy(dir / "right.bhtd" / file, dir / "dump" / ("layers.1." + file));
  }
  const auto check = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"check", fixture("layouts.json"), "--against", (dir / "dump").string()});
    return run(more);
  };
  const Outcome second = check({"--layer", "1"}), first = check({}), none = check({"--layer", "2"});
  EXPECT_EQ(second.status, 0) << second.out << second.err;
  EXPECT_NE(second.out.find("note: The tensors are those of layer \"layers.1\" of 2.\n"), second.out.npos)
      << second.out;
  EXPECT_EQ(first.status, 1);
  EXPECT_NE(first.out.find("note: The tensors are those of layer \"layers.0\" of 2.\n"), first.out.npos);
  EXPECT_EQ(none.status, 1);
  EXPECT_NE(none.err.find("expected a layer of layers.0, layers.1, got \"2\""), none.err.npos) << none.err;
  const Outcome no_layers =
      run({"check", fixture("layouts.json"), "--against", (dir / "right.bhtd").string(), "--layer", "3"});
  EXPECT_EQ(no_layers.status, 1);
  EXPECT_NE(no_layers.err.find("expected layer 0, the only one, got \"3\""), no_layers.err.npos)
      << no_layers.err;
}

TEST(CheckCommand, StopsItsSearchAtCtrlCAndSaysWhatItHas) {
  const TemporaryDirectory dir;
  constexpr std::size_t n_tokens = 700, width = 64;
  std::string rows;
  std::vector<double> numbers;
  for (std::size_t k = 0; k < n_tokens * width; ++k) {
    const double x = std::sin(static_cast<double>(k * k % 9973));
    numbers.push_back(x);
    rows += (k % width == 0 ? k == 0 ? "[" : "],[" : ",") + std::to_string(x);
  }
  support::put_bytes(dir / "s.json", "{\"attnscope\": 1, \"embeddings\": [" + rows +
                                         "]], \"n_heads\": 8, \"projections\": null}");
  put_npy(dir / "output.npy", {n_tokens, width}, numbers);
  const Outcome outcome = run({"check", (dir / "s.json").string(), "--against", (dir / "output.npy").string(),
                               "--map", "output=output"},
                              nullptr, interrupt);
  EXPECT_EQ(outcome.status, 1) << outcome.err;
  EXPECT_EQ(outcome.err, "") << "no progress where nobody watches";
  EXPECT_NE(outcome.out.find("The search for the cause was stopped before one was found."), outcome.out.npos)
      << outcome.out;
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
