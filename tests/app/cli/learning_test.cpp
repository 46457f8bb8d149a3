#include "app/cli/learning.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

#include "app/cli/batch.hpp"
#include "core/files/json.hpp"
#include "core/training/task.hpp"
#include "tests/support/temporary_directory.hpp"

namespace app {
namespace {

using core::training::TrainingSetup;

std::string error_of(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "learn");
  std::ostringstream out, err;
  EXPECT_EQ(run_batch(parse_arguments(std::move(arguments)), out, err), 2);
  EXPECT_EQ(out.str(), "");
  return err.str();
}

TEST(Learn, ChangesTheSetupOfTheTask) {
  const auto setup_of = [](std::vector<std::string> words) {
    return std::get<Learn>(parse_arguments(std::move(words))).setup;
  };
  EXPECT_EQ(setup_of({"learn", "induction"}), core::training::find_task("induction")->setup);
  TrainingSetup expected = core::training::find_task("recall")->setup;
  expected.n_layers = 3, expected.n_heads = 4, expected.d_model = 64, expected.n_kv_heads = 2,
  expected.d_mlp = 128;
  expected.positions = core::training::PositionChoice::alibi, expected.norm = core::training::NormChoice::rms;
  expected.causal = false, expected.dropout = 0.25, expected.rate = 0.05, expected.batch = 8;
  expected.optimizer = core::training::OptimizerChoice::sgd, expected.mistake = "no_scale";
  expected.n_steps = 7, expected.seed = 9;
  EXPECT_EQ(
      setup_of({"learn",      "--layers", "3",      "--heads",     "4",           "--width",   "64",
                "--kv-heads", "2",        "--mlp",  "128",         "--positions", "alibi",     "--norm",
                "rms",        "--mask",   "off",    "--dropout",   "0.25",        "--rate",    "0.05",
                "recall",     "--batch",  "8",      "--optimizer", "sgd",         "--mistake", "no_scale",
                "--steps",    "7",        "--seed", "9",           "--json"}),
      expected);
}

TEST(Learn, RefusesSetupsBeforeItTrains) {
  EXPECT_EQ(error_of({"recall", "--heads", "5"}), "attnscope: learn: --heads: expected 1 to 4, got 5\n");
  EXPECT_EQ(error_of({"recall", "--layers", "two"}),
            "attnscope: learn: --layers: expected a whole number, got \"two\"\n");
  EXPECT_EQ(error_of({"recall", "--mask", "no"}),
            "attnscope: learn: --mask: expected on or off, got \"no\"\n");
  EXPECT_EQ(error_of({"recall", "--mistake", "x"}),
            "attnscope: learn: --mistake: there is no bug \"x\"; attnscope mistakes lists them\n");
  EXPECT_EQ(
      error_of({"recall", "--norm", "none", "--out", "x"}),
      "attnscope: learn: --out: no model of transformers has --norm none; without --out it can be trained\n");
}

struct LearnOutcome {
  int status;
  std::string out, err;
};

LearnOutcome run_learn(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "learn");
  std::ostringstream out, err;
  const int status = run_batch(parse_arguments(std::move(arguments)), out, err);
  return {status, out.str(), err.str()};
}

TEST(Learn, PrintsOneObjectOfJsonAndItsProgressElsewhere) {
  const LearnOutcome outcome = run_learn({"previous-token", "--steps", "60", "--json"});
  EXPECT_EQ(outcome.status, 0);
  const auto json = core::formats::parse_json(outcome.out, "out");
  const auto steps = json.required("step").whole_numbers("steps");
  EXPECT_EQ(steps, (std::vector<std::uint64_t>{0, 10, 20, 30, 40, 50, 60}));
  for (const char* list : {"loss", "accuracy", "heads", "fresh_loss", "training_accuracy"})
    EXPECT_EQ(json.required(list).items("a list").size(), steps.size()) << list;
  EXPECT_EQ(json.required("heads").items("a list")[0].required("previous-token").items("layers").size(), 1u);
  EXPECT_THAT(outcome.err, testing::StartsWith("step 50: loss "));
}

TEST(Learn, WritesANewFolderAlone) {
  const support::TemporaryDirectory dir;
  const std::string folder = (dir / "run").string();
  const LearnOutcome outcome = run_learn({"why-mask", "--steps", "10", "--out", folder + "/"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, testing::StartsWith("step 10: loss "));
  for (const char* file :
       {"config.json", "tokenizer.json", "model.safetensors", "snapshots.safetensors", "run.json"})
    EXPECT_TRUE(std::filesystem::is_regular_file(dir / "run" / file)) << file;
  const LearnOutcome again = run_learn({"why-mask", "--out", folder});
  EXPECT_EQ(again.status, 1);
  EXPECT_EQ(again.err, "attnscope: " + folder + ": expected a new folder, but it exists\n");
  EXPECT_THAT(run_learn({"why-mask", "--out", folder + "/a/b"}).err,
              testing::HasSubstr("expected a folder, to make one"));
}

TEST(Learn, TakesATextAndNamesTheTasksOtherwise) {
  const support::TemporaryDirectory dir;
  std::ofstream(dir / "a.txt") << "one, two, three, four, five, six, seven";
  EXPECT_EQ(run_learn({(dir / "a.txt").string(), "--steps", "2"}).status, 0);
  EXPECT_EQ(
      run_learn({"nothing"}).err,
      "attnscope: nothing: expected previous-token, why-mask, reverse, recall, induction, dropout, or a text file\n");
}

TEST(Learn, GoesOnWithASavedRun) {
  const support::TemporaryDirectory dir;
  const std::string run = (dir / "run.json").string();
  EXPECT_EQ(run_learn({"previous-token", "--steps", "10", "--save", run}).status, 0);
  const LearnOutcome again = run_learn({run, "--steps", "20", "--json"}),
                     whole = run_learn({"previous-token", "--steps", "20", "--json"});
  EXPECT_EQ(again.out, whole.out);
  EXPECT_THAT(run_learn({run, "--layers", "2"}).err, testing::HasSubstr("cannot go on with another network"));
  EXPECT_THAT(run_learn({run, "--mask", "off", "--out", (dir / "out").string()}).err,
              testing::HasSubstr("no model of transformers has --mask off"));
}

TEST(Learn, FailsWhenItDiverges) {
  const LearnOutcome outcome = run_learn({"previous-token", "--mistake", "mask_hides_diagonal"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(
      outcome.err,
      "attnscope: learn: the loss or a gradient of step 0 is not a number; the network from before is kept\n");
}

}  // namespace
}  // namespace app
