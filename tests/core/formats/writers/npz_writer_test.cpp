#include "core/formats/writers/npz_writer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/editing/presets.hpp"
#include "core/formats/export.hpp"
#include "core/formats/file.hpp"
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
