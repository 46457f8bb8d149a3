// Meta's own checkpoints: params.json and shards, written by PyTorch, against NumPy's attention of the layer:
// adjacent rotary pairs, base 500000, 4 heads that share 2 KV heads, in bfloat16.
#include <gmock/gmock.h>

#include "core/files/tensor_formats.hpp"
#include "core/graph/attend.hpp"
#include "core/importing/import.hpp"
#include "tests/core/importing/written_tensors.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/temporary_directory.hpp"

namespace core::importing {
namespace {

using attention::Stage;
using testing::HasSubstr;

const std::filesystem::path meta = FIXTURES "/checkpoints/meta";

ImportResult opened(const std::filesystem::path& path) {
  return import_file(path,
                     {.layer = "0", .embeddings = meta / "x.npy", .ignored = std::vector<std::string>()}, {});
}

void expect_right(const ImportResult& result) {
  const formats::TensorFile right = formats::open_tensors(meta / "right.npz");
  const attention::Trace trace = attention::attend(result.model);
  ASSERT_EQ(result.model.n_heads, 4u);
  for (const auto& [stage, name] :
       {std::pair{Stage::rotated_queries, "rotated_queries"}, {Stage::weights, "weights"}})
    for (std::size_t head = 0; head < 4; ++head)
      EXPECT_LT(
          arma::abs(*trace.at(stage, head) - formats::matrix(right.read(name), std::vector{head})).max(),
          0.02)
          << name << head;
}

TEST(MetaCheckpoint, HasTheHeadsAndRotaryBaseOfParamsJson) {
  const ImportResult result = opened(meta / "llama3/consolidated.00.pth");
  expect_right(result);
  EXPECT_EQ(result.model.kv_heads(), 2u);
  EXPECT_EQ(result.model.additions.positions.rotary->base, 500000);
  EXPECT_THAT(import_report_text(result.import_report), HasSubstr("4 heads, as params.json says"));
}

TEST(MetaCheckpoint, HasScaledPositionsIfParamsJsonSaysSo) {
  const ImportResult result = opened(meta / "llama31");
  const positions::Scaling& scaling = result.model.additions.positions.rotary->scaling;
  EXPECT_EQ(scaling.rule, positions::ScalingRule::llama3);
  EXPECT_EQ(scaling.factor, 8);
  EXPECT_EQ(scaling.original, 8192);
}

TEST(MetaCheckpoint, InShardsIsTheWhole) {
  for (const char* path : {"two_files/consolidated.00.pth", "two_files/consolidated.01.pth", "two_files"}) {
    const ImportResult result = opened(meta / path), whole = opened(meta / "llama3");
    expect_right(result);
    for (const auto& side :
         {&attention::Projections::query, &attention::Projections::key, &attention::Projections::value})
      EXPECT_TRUE(arma::approx_equal(*((*result.model.projections).*side).weight,
                                     *((*whole.model.projections).*side).weight, "absdiff", 0));
    EXPECT_TRUE(arma::approx_equal(*result.model.projections->output->weight,
                                   *whole.model.projections->output->weight, "absdiff", 0));
  }
  const formats::TensorFile file = formats::open_tensors(meta / "two_files/consolidated.00.pth");
  EXPECT_EQ(file.info("tok_embeddings.weight").shape, (formats::TensorShape{64, 32}));
  EXPECT_EQ(file.info("output.weight").shape, (formats::TensorShape{64, 32}));
  EXPECT_EQ(file.info("norm.weight").shape, (formats::TensorShape{32}));
}

TEST(MetaCheckpoint, OfWhichAShardIsMissingIsRefused) {
  const support::TemporaryDirectory directory;
  const auto refusal = [&](const char* name) { return support::error_of([&] { opened(directory / name); }); };
  const auto put = [&](const char* from, const char* to) {
    std::filesystem::copy_file(meta / "two_files" / from, directory / to);
  };
  put("consolidated.00.pth", "consolidated.00.pth");
  EXPECT_THAT(
      refusal("consolidated.00.pth"),
      HasSubstr("consolidated.00.pth: layers.0.attention.wq.weight: expected params.json next to it"));
  put("params.json", "params.json");
  EXPECT_THAT(
      refusal("consolidated.00.pth"),
      HasSubstr("layers.0.attention.wq.weight: expected 32 outputs, as params.json says, got 16: 1 shard is "
                "too few, consolidated.01 is missing"));
  put("consolidated.01.pth", "consolidated.02.pth");
  EXPECT_THAT(refusal("consolidated.02.pth"),
              HasSubstr("expected all shards in its folder, consolidated.01.pth is missing"));
}

}  // namespace
}  // namespace core::importing
