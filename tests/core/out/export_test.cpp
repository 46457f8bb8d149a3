#include "core/out/export.hpp"

#include <gtest/gtest.h>

#include "tests/support/error_of.hpp"
#include "tests/support/temporary_directory.hpp"

namespace core::formats {
namespace {

using attention::Model;
using support::error_of;
using Names = std::set<std::string>;

Model two_tokens(std::size_t n_sequences = 1) {
  Model m;
  for (std::size_t s = 0; s < n_sequences; ++s)
    m.sequences.push_back({{"a,b", "c"}, arma::mat{{1, 0}, {0, 2}}});
  return m;
}

TEST(ExportStages, LabelsRowsWithTokensAndColumnsByTheirKind) {
  const support::TemporaryDirectory dir;
  export_stages(two_tokens(), dir.path(), {.stages = {"embeddings", "mask"}});
  EXPECT_EQ(support::bytes_of(dir / "embeddings.csv"), ",0,1\r\n\"a,b\",1,0\r\nc,0,2\r\n");
  EXPECT_EQ(support::bytes_of(dir / "mask.csv"), ",\"a,b\",c\r\n\"a,b\",1,0\r\nc,1,1\r\n");
}

TEST(ExportStages, WritesAFileAHeadAndAFolderASequence) {
  const support::TemporaryDirectory dir;
  Model m = two_tokens(2);
  m.n_heads = 2;
  const auto written = export_stages(m, dir / "new/deep", {.stages = {"weights", "output"}});
  Names expected{"new", "new/deep"};
  for (const char* folder : {"new/deep/sequence0", "new/deep/sequence1"})
    for (const char* file : {"", "/output.csv", "/weights.head0.csv", "/weights.head1.csv"})
      expected.insert(std::string(folder) + file);
  EXPECT_EQ(dir.names(), expected);
  EXPECT_EQ(written.size(), 6u);
}

TEST(ExportStages, LeavesOutStagesThatTheModelDoesNotHave) {
  const support::TemporaryDirectory dir;
  export_stages(two_tokens(), dir.path());
  EXPECT_FALSE(dir.names().contains("row_sums.head0.csv"));
  Model m = two_tokens();
  m.mask.method = attention::MaskMethod::renormalize;
  export_stages(m, dir.path(), {.labels = false});
  EXPECT_EQ(support::bytes_of(dir / "row_sums.head0.csv").substr(0, 3), "0.6");  // e^½ / (e^½ + 1) for row 0
}

TEST(ExportStages, NamesStagesThatCannotBeHad) {
  const support::TemporaryDirectory dir;
  EXPECT_EQ(error_of([&] { export_stages(two_tokens(), dir / "d", {.stages = {"weight"}}); }),
            "stage \"weight\": expected one of " + known_stage_names());
  EXPECT_EQ(error_of([&] { export_stages(two_tokens(), dir / "d", {.stages = {"row_sums"}}); }).substr(0, 66),
            "stage \"row_sums\": this model does not have it; it has embeddings, ");
  EXPECT_EQ(dir.names(), Names());
}

TEST(ExportStages, LeavesEverythingAsItWasWhenAFileCannotBeWritten) {
  const support::TemporaryDirectory dir;
  const std::string path = dir.path().string();
  support::put_bytes(dir / "weights.head0.csv", "old");
  std::filesystem::create_directory(dir / "output.csv");
  const Names before = dir.names();
  EXPECT_EQ(error_of([&] { export_stages(two_tokens(), dir.path()); }),
            path + "/output.csv: cannot be written: it is a directory");
  EXPECT_EQ(error_of([&] { export_stages(two_tokens(), dir / "weights.head0.csv"); }),
            path + "/weights.head0.csv: cannot be written: part of the path is not a directory");
  Model bad = two_tokens();
  bad.n_heads = 3;
  EXPECT_EQ(error_of([&] { export_stages(bad, dir / "new/deep"); }),
            "n_heads: expected a number of heads that divides d_out = 2, got 3");
  EXPECT_EQ(dir.names(), before);
  EXPECT_EQ(support::bytes_of(dir / "weights.head0.csv"), "old");
}

}  // namespace
}  // namespace core::formats
