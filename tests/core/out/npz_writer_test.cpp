#include "core/out/npz_writer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/editing/presets.hpp"
#include "core/files/file.hpp"
#include "core/files/tensor_file.hpp"
#include "core/files/tensor_formats.hpp"
#include "core/graph/attend.hpp"
#include "core/graph/stages.hpp"
#include "core/out/export.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/temporary_directory.hpp"

// That NumPy reads the same numbers is held by tests/python.

namespace {

using core::editing::find_preset;
using core::formats::ExportOptions;
using core::formats::find_matrix_format;
using testing::HasSubstr;

TEST(Npz, NamesStagesAndLearnedMatrices) {
  const std::string archive = core::formats::npz_bytes(find_preset("multi-head")->make());
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
  model.sequences[1].tokens[5] = "\xFF!";  // no UTF-8
  const auto path = core::formats::export_to(model, directory / "a.npz", {.archive = true}).front();
  const core::formats::Tensor tokens = core::formats::open_tensors(path).read("tokens");
  EXPECT_EQ(tokens.shape, (core::formats::Shape{2, 6}));
  EXPECT_EQ(tokens.texts[0], "Your");
  EXPECT_EQ(tokens.texts[2], "naïve 漢字🙂");
  EXPECT_EQ(tokens.texts[11], "\uFFFD!");
}

TEST(Npz, IsReadBackToTheLastBit) {
  const support::TemporaryDirectory directory;
  const auto model = find_preset("chapter-multi-head")->make();  // two sequences, two heads
  const auto path = core::formats::export_to(model, directory / "a.npz", {.archive = true}).front();
  const core::formats::TensorFile file = core::formats::open_tensors(path);
  EXPECT_EQ(file.find("weights")->shape, (core::formats::Shape{2, 2, 6, 6}));
  EXPECT_EQ(file.find("output")->shape, (core::formats::Shape{2, 6, 2}));
  EXPECT_EQ(file.find("projections.output.bias")->shape, (core::formats::Shape{2}));
  const auto trace = core::attention::attend(model, 1);
  const std::vector<std::size_t> place{1, 0};
  const arma::mat keys = core::formats::matrix(file.read("keys", place));
  EXPECT_TRUE(arma::approx_equal(keys, *core::attention::info(core::attention::Stage::keys).matrix(trace, 0),
                                 "absdiff", 0));
}

TEST(Npz, HoldsOnlyTheStagesThatAreAskedFor) {
  const std::string archive = core::formats::npz_bytes(find_preset("multi-head")->make(), {"weights"});
  EXPECT_THAT(archive, HasSubstr("weights.npy"));
  EXPECT_EQ(archive.find("output"), archive.npos);
  EXPECT_EQ(archive.find("projections"), archive.npos);
}

TEST(ExportTo, WritesASingleMatrixToTheNamedFile) {
  const support::TemporaryDirectory directory;
  const ExportOptions options{.stages = {"weights"}, .format = find_matrix_format("npy")};
  const auto files =
      core::formats::export_to(find_preset("004-causal")->make(), directory.path() / "w.npy", options);
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0], directory.path() / "w.npy");
  EXPECT_THAT(core::formats::read_file(files[0], 10000), HasSubstr("'shape': (6, 6)"));
}

TEST(ExportTo, RefusesAFileForSeveralMatrices) {
  const support::TemporaryDirectory directory;
  const ExportOptions options{.stages = {"weights"}, .format = find_matrix_format("csv")};
  EXPECT_THAT(support::error_of([&] {
                core::formats::export_to(find_preset("multi-head")->make(), directory.path() / "w.csv",
                                         options);
              }),
              HasSubstr("w.csv: expected a directory for 2 matrices; a .csv file holds one"));
  EXPECT_FALSE(std::filesystem::exists(directory.path() / "w.csv"));
}

TEST(ExportTo, PutsAnArchiveIntoADirectoryThatExists) {
  const support::TemporaryDirectory directory;
  const auto files = core::formats::export_to(find_preset("004-causal")->make(), directory.path(),
                                              ExportOptions{.archive = true});
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0], directory.path() / "attention.npz");
}

}  // namespace
