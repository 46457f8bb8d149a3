#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/files/tensor_formats.hpp"
#include "core/out/numpy.hpp"
#include "tests/cli/run_program.hpp"

namespace cli {
namespace {

using support::TemporaryDirectory;
using testing::HasSubstr;
using testing::StartsWith;

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
    EXPECT_THAT(outcome.out, StartsWith(R"({"agrees": true, "first_difference": null, "causes": [])"));
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
    EXPECT_THAT(outcome.out, HasSubstr(std::string("\"causes\": [\"") + mistake + "\"]"));
    const Outcome told = run({"check", fixture("full.json"), "--against", path});
    EXPECT_EQ(told.status, 1);
    EXPECT_THAT(told.out, HasSubstr(std::string("Likely cause: ") + mistake));
    EXPECT_THAT(run({"mistakes"}).out, HasSubstr(std::string(mistake) + "\t"));
  }
}

TEST(CheckCommand, TakesTensorsInsteadOfAModel) {
  const TemporaryDirectory dir;
  const std::string reference = (dir / "reference.npz").string(), observed = (dir / "observed.npz").string();
  const std::string stages = "queries,keys,values,scores,scaled_scores,masked_scores,weights,contexts";
  ASSERT_EQ(run({"export", fixture("causal.json"), "--out", reference, "--stages", stages}).status, 0);
  ASSERT_EQ(run({"export", fixture("causal.json"), "--out", observed, "--stages", "weights,contexts",
                 "--mistake", "no_scale"})
                .status,
            0);
  const Outcome same = run({"check", "--reference", reference, "--observed", reference});
  EXPECT_EQ(same.status, 0) << same.out;
  EXPECT_THAT(same.err, HasSubstr("reference.npz: causal, as its own later tensors are"));
  const Outcome other = run({"check", "--reference", reference, "--observed", observed});
  EXPECT_EQ(other.status, 1);
  EXPECT_THAT(other.out, HasSubstr("Likely cause: no_scale"));
  const Outcome said =
      run({"check", "--reference", reference, "--observed", observed, "--causal", "--scale", "1"});
  EXPECT_THAT(said.err, HasSubstr("causal, as said, scale 1, as said"));
  EXPECT_EQ(said.status, 0) << said.out << said.err;
  EXPECT_EQ(run({"check", fixture("causal.json"), "--reference", reference, "--observed", observed}).status,
            2);
  const Outcome before = run({"check", "--ours", reference, "--theirs=" + observed});
  EXPECT_EQ(before.out, other.out);
  EXPECT_THAT(before.err, AllOf(HasSubstr("note: --ours is called --reference now"),
                                HasSubstr("note: --theirs is called --observed now")));
  // Only tensors computed from queries, keys and values are compared from an export.
  ASSERT_EQ(run({"export", fixture("causal.json"), "--out", reference, "--format", "npz"}).status, 0);
  EXPECT_THAT(run({"check", "--reference", reference, "--observed", observed}).out,
              HasSubstr("Likely cause: no_scale"));
}

TEST(CheckCommand, SaysInOneLineWhereALinkLeadsToItself) {
  const TemporaryDirectory dir;
  const std::string loop = (dir / "loop").string();
  std::filesystem::create_symlink("loop", loop);
  const Outcome outcome = run({"check", fixture("full.json"), "--against", loop});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, StartsWith("attnscope: " + loop + ": not readable: "));
  const Outcome given =
      run({"session", "--given", "weights=" + loop + ":a", "--out", (dir / "s.json").string()});
  EXPECT_EQ(given.status, 1);
  EXPECT_THAT(given.err, StartsWith("attnscope: " + loop + ": not readable: "));
}

void put_npy(const std::filesystem::path& path, const std::vector<std::size_t>& shape,
             const std::vector<double>& numbers) {
  std::string bytes = core::formats::npy_header(shape);
  core::formats::append_rows(bytes, arma::rowvec(numbers));
  support::put_bytes(path, bytes);
}

/// Writes one case of a file of reference tensors to a folder and returns its path.
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
  EXPECT_THAT(found.out, HasSubstr("[B, T, H, d]"));
  EXPECT_THAT(
      found.out,
      HasSubstr("Everything agrees: 5 tensors of 5 stages were compared; not given, and not compared: "
                "embeddings, scores, "));
  EXPECT_EQ(run({"check", fixture("layouts.json"), "--against", path, "--layout", "bthd"}).status, 0);
  const Outcome other = run({"check", fixture("layouts.json"), "--against", path, "--layout", "bhtd"});
  EXPECT_EQ(other.status, 1);
  EXPECT_THAT(other.out, HasSubstr("got [1, 5, 2, 4]: heads after tokens? transpose, or say --layout bthd"));
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
  EXPECT_THAT(second.out, HasSubstr("note: The tensors are those of layer \"layers.1\" of 2.\n"));
  EXPECT_EQ(first.status, 1);
  EXPECT_THAT(first.out, HasSubstr("note: The tensors are those of layer \"layers.0\" of 2.\n"));
  EXPECT_EQ(none.status, 1);
  EXPECT_THAT(none.err, HasSubstr("expected a layer of layers.0, layers.1, got \"2\""));
  const Outcome no_layers =
      run({"check", fixture("layouts.json"), "--against", (dir / "right.bhtd").string(), "--layer", "3"});
  EXPECT_EQ(no_layers.status, 1);
  EXPECT_THAT(no_layers.err, HasSubstr("expected layer 0, the only one, got \"3\""));
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
  EXPECT_THAT(outcome.out, HasSubstr("The search for the cause was stopped before one was found."));
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
