#include "core/training/whole_model.hpp"

#include <gtest/gtest.h>

#include "core/base/error.hpp"
#include "core/files/tensor_formats.hpp"
#include "core/training/run_files.hpp"
#include "tests/support/temporary_directory.hpp"

namespace core::training {
namespace {

struct FamilySetup {
  const char* family;
  TrainingSetup setup;
};

TrainingSetup made(PositionChoice positions, NormChoice norm, std::size_t n_heads, std::size_t n_kv_heads,
                   std::size_t d_mlp, std::size_t n_layers = 1) {
  TrainingSetup setup;
  setup.positions = positions, setup.norm = norm, setup.n_heads = n_heads, setup.n_kv_heads = n_kv_heads;
  setup.d_mlp = d_mlp, setup.n_layers = n_layers, setup.n_steps = 12, setup.batch = 2;
  return setup;
}

using enum PositionChoice;
using Norm = NormChoice;

std::vector<FamilySetup> exported() {
  return {{"GPT-2", made(learned, Norm::layer, 2, 0, 24, 2)},
          {"GPT-2", made(none, Norm::layer, 1, 0, 0)},
          {"StarCoder", made(learned, Norm::layer, 4, 1, 16)},
          {"GPT-NeoX", made(rotary, Norm::layer, 2, 0, 24, 2)},
          {"StarCoder2", made(rotary, Norm::layer, 4, 2, 0)},
          {"Llama", made(rotary, Norm::rms, 4, 2, 0)},
          {"Arcee", made(rotary, Norm::rms, 2, 0, 48)},
          {"MPT", made(alibi, Norm::layer, 3, 0, 32)}};
}

std::vector<FamilySetup> not_exported() {
  std::vector<FamilySetup> all{
      {"--norm rms with --positions learned", made(learned, Norm::rms, 2, 0, 8)},
      {"--norm rms with --positions alibi", made(alibi, Norm::rms, 2, 0, 8)},
      {"--kv-heads 2 with --positions learned", made(learned, Norm::layer, 4, 2, 8)},
      {"--kv-heads 1 with --positions alibi", made(alibi, Norm::layer, 2, 1, 8)},
      {"--mlp 100 with --positions alibi and --width 16", made(alibi, Norm::layer, 2, 0, 100)},
      {"--mask off", made(rotary, Norm::layer, 2, 0, 8)},
      {"--norm none", made(rotary, Norm::none, 2, 0, 8)},
      {"--mistake no_scale", made(rotary, Norm::layer, 2, 0, 8)}};
  all[4].setup.d_model = 16, all[5].setup.causal = false, all[7].setup.mistake = "no_scale";
  for (FamilySetup& each : all)
    if (each.setup.n_heads == 3) each.setup.d_model = 48;
  return all;
}

TrainingRun trained(const TrainingSetup& setup) {
  TrainingRun run(setup, std::make_shared<TaskData>(*find_task("recall")));
  while (!run.is_done()) run.step();
  return run;
}

/// Returns the largest difference of the logits of a whole model and of the network on the first fresh
/// sample.
double difference(const transformer::Transformer& model, const TrainingRun& run) {
  ThreadPool pool(1);
  const StopToken progress;
  const transformer::CallContext context{pool, progress};
  const Sample& sample = run.fresh_samples().front();
  std::string text;
  for (const std::size_t token : sample.tokens) text += run.data().letters()[token];
  EXPECT_EQ(tokenizers::ids_of(model.tokenize(text)), sample.tokens);
  const auto pass = model.run(sample.tokens, {}, context);
  const NetworkPass expected(run.network(), {&sample, 1});
  double largest = 0;
  for (std::size_t row = 0; row < sample.tokens.size(); ++row) {
    const arma::frowvec next = model.next(*pass, row, context);
    largest = std::max(largest,
                       arma::abs(arma::conv_to<arma::mat>::from(next) - expected.logits(0).row(row)).max());
  }
  return largest;
}

TEST(WholeModel, ComputesWhatTheNetworkDoesInItsFamily) {
  for (auto [family, setup] : exported()) {
    if (setup.n_heads == 3) setup.d_model = 48;
    EXPECT_EQ(no_export_reason(setup), "");
    const TrainingRun run = trained(setup);
    const auto model = whole_model(run.network(), run.data(), "trained");
    EXPECT_EQ(model->description().family, family);
    EXPECT_LT(difference(*model, run), 1e-5) << family;

    const support::TemporaryDirectory dir;
    save_run(run, dir / "run");
    EXPECT_LT(difference(*transformer::open_transformer(dir / "run", 1 << 20), run), 1e-5) << family;
  }
}

TEST(WholeModel, IsMadeOfSetupsThatTransformersLacks) {
  const support::TemporaryDirectory dir;
  for (const auto& [option, setup] : not_exported()) {
    const std::string reason = std::string("no model of transformers has ") + option;
    EXPECT_EQ(no_export_reason(setup), reason);
    const TrainingRun run = trained(setup);
    try {
      save_run(run, dir / "run");
      ADD_FAILURE() << option;
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), reason);
    }
    EXPECT_FALSE(std::filesystem::exists(dir / "run"));
    if (setup.mistake.empty()) {
      EXPECT_LT(difference(*whole_model(run.network(), run.data(), "trained"), run), 1e-5) << option;
    } else {
      EXPECT_THROW(whole_model(run.network(), run.data(), "trained"), Error) << "it would have no bug";
    }
  }
}

TEST(WholeModel, IsExportedWithItsAblatedHeadsAndNotWithOtherEdits) {
  TrainingRun run = trained(made(rotary, Norm::layer, 2, 0, 0));
  run.change(HeadToggle{0, 1});
  const support::TemporaryDirectory dir;
  save_run(run, dir / "run");
  EXPECT_LT(difference(*transformer::open_transformer(dir / "run", 1 << 20), run), 1e-5);
  Network edited = run.network();
  edited.layers[0].attention.mask.prefix = 2;
  EXPECT_THROW(model_files(edited, run.data()), Error);
  EXPECT_THROW(save_run(trained(made(rotary, Norm::layer, 2, 0, 0)), dir / "run"), Error);  // it exists
}

TEST(WholeModel, IsWrittenWithItsSnapshots) {
  const TrainingRun run = trained(made(learned, Norm::layer, 1, 0, 0));
  const support::TemporaryDirectory dir;
  save_run(run, dir / "run");
  const auto snapshots = formats::open_tensors(dir / "run" / "snapshots.safetensors");
  EXPECT_EQ(snapshots.read("steps").numbers, (std::vector<double>{0, 10}));
  const std::string name = "transformer.wte.weight";
  EXPECT_EQ(snapshots.info(name).shape, (formats::TensorShape{2, 16, 32}));
  const arma::mat first = formats::matrix(snapshots.read(name, std::array<std::size_t, 1>{0}));
  EXPECT_EQ(attention::SharedMatrix(first), run.restored(*run.snapshots().front()).token_embedding);
}

}  // namespace
}  // namespace core::training
