// Lenses of files that their own packages wrote, and what those predict:
// tests/fixtures/transformer/make_lens_files.py.
#include "core/model/lens.hpp"

#include <gmock/gmock.h>
#include <filesystem>

#include "core/model/text_reading.hpp"
#include "tests/core/model/goldens.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/temporary_directory.hpp"

namespace core::transformer {
namespace {

namespace fs = std::filesystem;
using goldens::Golden;
using goldens::relative_difference;
using testing::HasSubstr;

const std::string lens_model = goldens::folder + "gpt2_by_layer";

struct LensTest : testing::Test {
  LensLogits logits(LensKind kind) {
    const auto ids = goldens::ids_of(*model, goldens::text_in(lens_model + "/text.txt"));
    const auto pass = goldens::run(*model, ids, tools);
    return lens_logits(*model, *pass, ids.size() - 1, open_lens(*model, kind, tools.token), tools.context);
  }
  std::shared_ptr<const Transformer> model = goldens::opened(lens_model);
  goldens::Tools tools;
  Golden golden{goldens::folder + "lenses.npz"};
};

TEST_F(LensTest, ReadsTheResidualStreamAlsoBetweenAttentionAndTheMlp) {
  const LensLogits both = logits(LensKind::logit_between);
  EXPECT_LT(relative_difference(both.after, golden.matrix("logit")), 1e-5);
  EXPECT_LT(relative_difference(both.between, golden.matrix("between")), 1e-5);
  EXPECT_TRUE(logits(LensKind::logit).between.empty());
}

TEST_F(LensTest, PredictsWithTheMapsThatTunedLensHasSaved) {
  EXPECT_LT(relative_difference(logits(LensKind::tuned).after, golden.matrix("tuned")), 1e-5);
}

TEST_F(LensTest, MultipliesByJacobiansAndLeavesOutLayersWithoutOne) {
  const arma::fmat after = logits(LensKind::jacobian).after;
  EXPECT_LT(relative_difference(after.row(0), golden.matrix("jacobian")), 1e-5);
  EXPECT_TRUE(std::isnan(after(1, 0)));
  EXPECT_LT(relative_difference(after.row(2), golden.matrix("logit").row(2)), 1e-5);
}

TEST_F(LensTest, OfAParallelLayerHasNoPointBetween) {
  const auto parallel = goldens::opened(goldens::folder + "gpt_neox");
  const auto pass = goldens::run(*parallel, {1, 2, 3}, tools);
  const LensLogits both = lens_logits(*parallel, *pass, 2, {LensKind::logit_between}, tools.context);
  EXPECT_TRUE(both.between.has_nan());
  EXPECT_TRUE(both.after.is_finite());
}

TEST_F(LensTest, OfAnotherModelOrDamagedIsRefused) {
  const support::TemporaryDirectory directory;
  const fs::path copy = directory.path() / "model";
  fs::copy(lens_model, copy, fs::copy_options::recursive);
  const auto refusal = [&](LensKind kind) {
    return support::error_of([&] { open_lens(*goldens::opened(copy), kind, tools.token); });
  };
  support::put_bytes(copy / "lens/config.json", R"({"d_model": 17, "num_hidden_layers": 3})");
  EXPECT_THAT(refusal(LensKind::tuned),
              HasSubstr("config.json: d_model: expected 16, as the model has, got 17"));
  fs::copy_file(copy / "lens/params.pt", copy / "lens/jacobian_lens.pt",
                fs::copy_options::overwrite_existing);
  EXPECT_THAT(refusal(LensKind::jacobian), HasSubstr("expected matrices J.0 … J.2 of layers, got none"));
  fs::remove_all(copy / "lens");
  EXPECT_THAT(refusal(LensKind::tuned), HasSubstr("expected lens/params.pt with its config.json"));
}

}  // namespace
}  // namespace core::transformer
