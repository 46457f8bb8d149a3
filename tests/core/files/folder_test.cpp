#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "core/editing/presets.hpp"
#include "core/files/tensor_formats.hpp"
#include "core/graph/attend.hpp"
#include "core/out/export.hpp"
#include "core/out/numpy.hpp"
#include "tests/core/files/known_tensors.hpp"
#include "tests/core/importing/written_tensors.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/matchers.hpp"

namespace core::formats::readers {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(Folder, OfAnExportHasEveryStageAsOneTensor) {
  attention::Model model = editing::default_preset().make();
  model.sequences.push_back(model.sequences.front());
  model.sequences.back().embeddings.edit()(0, 0) += 1;
  const support::TemporaryDirectory directory;
  for (const MatrixFormat& format : matrix_formats()) {
    ExportOptions options;
    options.format = &format;
    export_stages(model, directory / format.name, options);
    const TensorFile file = open_tensors(directory / format.name);
    const std::size_t n = model.n_tokens();
    ASSERT_TRUE(file.find("weights"));
    EXPECT_EQ(file.find("weights")->shape, (TensorShape{2, model.n_heads, n, n}));
    for (std::size_t s = 0; s < 2; ++s) {
      const auto trace = attention::attend(model, s);
      const std::size_t whole[] = {s}, head[] = {s, model.n_heads - 1};
      EXPECT_TRUE(
          support::is_near(matrix(file.read("output", whole)), *trace.at(attention::Stage::output), 0));
      EXPECT_TRUE(support::is_near(matrix(file.read("weights", head)),
                                   *trace.at(attention::Stage::weights, model.n_heads - 1), 0));
      EXPECT_TRUE(support::is_near(matrix(file.read("weights"), head),
                                   *trace.at(attention::Stage::weights, model.n_heads - 1), 0));
    }
  }
}

TEST(Folder, WithAHeadMissingOrOfAnotherShapeIsRefused) {
  const support::TemporaryDirectory directory;
  const auto error = [&] { return support::error_of([&] { open_tensors(directory.path()); }); };
  EXPECT_THAT(error(), HasSubstr("expected a folder of tensors"));
  written(directory, "weights.head0.csv", "1,2\n");
  written(directory, "weights.head2.csv", "1,2\n");
  EXPECT_THAT(error(), HasSubstr("weights: number 1 is missing"));
  written(directory, "weights.head1.csv", "1,2,3\n");
  EXPECT_THAT(error(), HasSubstr("weights: expected every part to be [1, 2] as the first, got [1, 3]"));
  written(directory, "weights.head1.csv", "3,x\n");
  EXPECT_THAT(error(), HasSubstr("weights.head1.csv: line 1, column 2: expected a number"));
}

TEST(Folder, WithAHeadOfTextAmongNumbersIsRefused) {
  const support::TemporaryDirectory directory;
  written(directory, "weights.head0.npy", npy_bytes(arma::mat(1, 2, arma::fill::ones)));
  written(directory, "weights.head1.npy", npy_strings({"a", "b"}, {1, 2}));
  EXPECT_THAT(support::error_of([&] { open_tensors(directory.path()); }),
              HasSubstr("weights: expected every part to be [1, 2] as the first, got text [1, 2]"));
}

TEST(Folder, RefusesTwoTensorsOfOneName) {
  const support::TemporaryDirectory directory;
  written(directory, "a.csv", "1,2\n");
  written(directory, "a.txt", "[1, 2]");
  EXPECT_THAT(support::error_of([&] { open_tensors(directory.path()); }),
              HasSubstr("two tensors are called a"));
}

TEST(Folder, WithALinkThatLeadsToItselfIsRefusedInOneLine) {
  for (const char* name : {"loop.csv", "sequence0"}) {
    const support::TemporaryDirectory directory;
    written(directory, "a.csv", "1,2\n");
    std::filesystem::create_symlink(name, directory / name);
    const std::string error = support::error_of([&] { open_tensors(directory.path()); });
    EXPECT_THAT(error, StartsWith((directory / name).string() + ": not readable: ")) << name;
    EXPECT_EQ(error.find('\n'), error.npos);
  }
}

TEST(Folder, PassesOverLinksWithoutATensorsName) {
  const support::TemporaryDirectory directory;
  written(directory, "a.csv", "1,2\n");
  std::filesystem::create_symlink("loop", directory / "loop");
  std::filesystem::create_symlink("nowhere", directory / "sequence0");
  EXPECT_EQ(open_tensors(directory.path()).tensors().size(), 1u);
}

TEST(Folder, MayHaveANameThatIsNotUtf8) {
  const support::TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "\xE9");
  support::put_bytes(directory / "\xE9/b\xFF.csv", "1,2\n");
  const TensorFile file = open_tensors(directory / "\xE9");
  ASSERT_EQ(file.tensors().size(), 1u);
  EXPECT_EQ(file.read(file.tensors().front().name).numbers, (std::vector<double>{1, 2}));
}

TEST(Folder, WithAPipeIsRefused) {
  const support::TemporaryDirectory directory;
  const std::string pipe = (directory / "a.csv").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(support::error_of([&] { open_tensors(directory.path()); }),
            pipe + ": expected a regular file, got a device or pipe");
}

TEST(Folder, GathersACheckpointInSeveralFiles) {
  const support::TemporaryDirectory directory;
  support::write(directory / "model-00001-of-00002.safetensors", {{"a", {2}, {1, 2}}});
  support::write(directory / "model-00002-of-00002.safetensors", {{"b", {2}, {3, 4}}});
  written(directory, "config.json", "{}");
  const TensorFile file = open_tensors(directory.path());
  ASSERT_EQ(file.tensors().size(), 2u);
  EXPECT_EQ(file.read("b").numbers, (std::vector<double>{3, 4}));
}

TEST(Folder, MayHaveMoreFilesThanAProcessMayHaveOpen) {
  const support::TemporaryDirectory directory;
  const std::string bytes = npy_bytes(arma::mat{{1, 2}});
  rlimit old;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &old), 0);
  const rlimit few{64, old.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  for (int k = 0; k < 100; ++k) support::put_bytes(directory / ("t" + std::to_string(k) + ".npy"), bytes);
  const std::string error = support::error_of([&] {
    const TensorFile file = open_tensors(directory.path());
    EXPECT_EQ(file.tensors().size(), 100u);
    EXPECT_EQ(file.read("t99").numbers, (std::vector<double>{1, 2}));
    support::put_bytes(directory / "other", bytes);
    std::filesystem::rename(directory / "other", directory / "t5.npy");
    file.read("t5");
  });
  ::setrlimit(RLIMIT_NOFILE, &old);
  EXPECT_EQ(error, (directory / "t5.npy").string() + ": was replaced while it was read");
}

}  // namespace
}  // namespace core::formats::readers
