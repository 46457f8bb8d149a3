#include <gmock/gmock.h>
#include <cmath>
#include <random>

#include "core/base/token.hpp"
#include "core/editing/presets.hpp"
#include "core/files/readers.hpp"
#include "core/files/tensor.hpp"
#include "core/files/tensor_formats.hpp"
#include "core/graph/attend.hpp"
#include "core/graph/stages.hpp"
#include "core/out/export.hpp"
#include "core/out/numpy.hpp"
#include "core/system/file.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/temporary_directory.hpp"

// tests/python checks that NumPy reads the same numbers.
namespace core::formats {
namespace {

using editing::find_preset;
using testing::HasSubstr;

TEST(NpyBytes, AreThoseThatNumPyWrites) {
  const arma::mat numbers{{1.5, -0.0, -INFINITY}, {0.1, 1e300, 5e-324}};  // as make_sessions.py saves them
  EXPECT_EQ(npy_bytes(numbers), support::bytes_of(FIXTURES "/formats/two_by_three.npy"));
}

TEST(NpyBytes, PutTheFirstNumberOnAMultipleOf64) {
  const std::string bytes = npy_bytes(arma::mat(1234567, 1, arma::fill::zeros));
  EXPECT_EQ((bytes.size() - 1234567 * sizeof(double)) % 64, 0u);
}

TEST(Npz, NamesStagesAndLearnedMatrices) {
  const std::string archive = npz_bytes(find_preset("multi-head")->make());
  for (const char* name : {"embeddings.npy", "weights.npy", "output.npy", "projections.query.weight.npy",
                           "projections.output.bias.npy"})
    EXPECT_THAT(archive, HasSubstr(name));
  EXPECT_EQ(archive.find("projections.query.bias"), archive.npos);
  EXPECT_EQ(archive.find("row_sums"), archive.npos);
}

TEST(Npz, HoldsTheTokensAsText) {
  const support::TemporaryDirectory directory;
  auto model = find_preset("chapter-multi-head")->make();  // two sequences of six tokens
  model.sequences[0].tokens[2] = "naïve 漢字🙂";
  model.sequences[1].tokens[5] = "\xFF!";  // not UTF-8
  const auto path = export_to(model, directory / "a.npz", {.archive = true}).front();
  const Tensor tokens = open_tensors(path).read("tokens");
  EXPECT_EQ(tokens.shape, (TensorShape{2, 6}));
  EXPECT_EQ(tokens.texts[0], "Your");
  EXPECT_EQ(tokens.texts[2], "naïve 漢字🙂");
  EXPECT_EQ(tokens.texts[11], "\uFFFD!");
}

TEST(Npz, IsReadBackToTheLastBit) {
  const support::TemporaryDirectory directory;
  const auto model = find_preset("chapter-multi-head")->make();  // two sequences, two heads
  const auto path = export_to(model, directory / "a.npz", {.archive = true}).front();
  const TensorFile file = open_tensors(path);
  EXPECT_EQ(file.find("weights")->shape, (TensorShape{2, 2, 6, 6}));
  EXPECT_EQ(file.find("output")->shape, (TensorShape{2, 6, 2}));
  EXPECT_EQ(file.find("projections.output.bias")->shape, (TensorShape{2}));
  const auto trace = attention::attend(model, 1);
  const std::vector<std::size_t> place{1, 0};
  const arma::mat keys = matrix(file.read("keys", place));
  EXPECT_TRUE(arma::approx_equal(keys, *trace.at(attention::Stage::keys, 0), "absdiff", 0));
}

TEST(Npz, HoldsOnlyTheStagesThatAreAskedFor) {
  const std::string archive = npz_bytes(find_preset("multi-head")->make(), {"weights"});
  EXPECT_THAT(archive, HasSubstr("weights.npy"));
  EXPECT_EQ(archive.find("output"), archive.npos);
  EXPECT_EQ(archive.find("projections"), archive.npos);
}

TEST(ExportTo, WritesASingleMatrixToTheNamedFile) {
  const support::TemporaryDirectory directory;
  const ExportOptions options{.stages = {"weights"}, .format = find_matrix_format("npy")};
  const auto files = export_to(find_preset("004-causal")->make(), directory.path() / "w.npy", options);
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0], directory.path() / "w.npy");
  EXPECT_THAT(system::read_file(files[0], 10000), HasSubstr("'shape': (6, 6)"));
}

TEST(ExportTo, RefusesAFileForSeveralMatrices) {
  const support::TemporaryDirectory directory;
  const ExportOptions options{.stages = {"weights"}, .format = find_matrix_format("csv")};
  EXPECT_THAT(support::error_of(
                  [&] { export_to(find_preset("multi-head")->make(), directory.path() / "w.csv", options); }),
              HasSubstr("w.csv: expected a directory for 2 matrices; a .csv file holds one"));
  EXPECT_FALSE(std::filesystem::exists(directory.path() / "w.csv"));
}

TEST(ExportTo, PutsAnArchiveIntoADirectoryThatExists) {
  const support::TemporaryDirectory directory;
  const auto files =
      export_to(find_preset("004-causal")->make(), directory.path(), ExportOptions{.archive = true});
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0], directory.path() / "attention.npz");
}

ZipEntry file(const std::string& name, const std::string& content) {
  return {name, [content] { return content; }};
}

std::string noise(std::size_t count) {
  std::mt19937 random(1);
  std::string bytes(count, '\0');
  for (char& c : bytes) c = static_cast<char>(random());
  return bytes;
}

TEST(ZipBytes, HoldEveryFile) {
  const std::string zeros(100000, '\0'), random = noise(100000);
  const std::string bytes = zip_bytes({file("zeros", zeros), file("noise", random), file("empty", "")});
  EXPECT_LT(bytes.size(), 102000u);
  const support::TemporaryDirectory directory;
  support::put_bytes(directory / "a.zip", bytes);
  const readers::ZipArchive archive(directory / "a.zip");
  ASSERT_EQ(archive.members().size(), 3u);
  core::StopToken progress;
  EXPECT_EQ(archive.bytes(archive.members()[0], 0, zeros.size(), progress), zeros);
  EXPECT_EQ(archive.bytes(archive.members()[1], 0, random.size(), progress), random);
  EXPECT_EQ(archive.bytes(archive.members()[2], 0, 0, progress), "");
}

TEST(ZipBytes, AreTheSameForTheSameFiles) {
  const auto bytes = [] { return zip_bytes({file("a", "content"), file("b", std::string(5000, 'b'))}); };
  const std::string first = bytes();
  EXPECT_EQ(bytes(), first);
  EXPECT_EQ(first.substr(10, 4), std::string("\0\0\x21\0", 4))
      << "midnight of 1 January 1980, after APPNOTE 4.4.6";
}

TEST(ZipBytes, GivesOnWhatMakingAContentThrows) {
  EXPECT_THROW(zip_bytes({file("a", "1"), {"b", []() -> std::string { throw core::Stopped(); }}}),
               core::Stopped);
  EXPECT_EQ(support::error_of([] {
              zip_bytes({file("a", "1"), file("a", "2")});
            }),
            "the archive cannot be made: File already exists");
}

}  // namespace
}  // namespace core::formats
