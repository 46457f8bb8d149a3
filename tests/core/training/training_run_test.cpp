#include "core/training/training_run.hpp"

#include <gmock/gmock.h>
#include <algorithm>
#include <cmath>
#include <functional>

#include "core/base/error.hpp"
#include "core/graph/bugs.hpp"
#include "core/training/run_files.hpp"

namespace core::training {
namespace {

using testing::Contains;
using testing::Field;

TrainingRun trained(const char* task, const std::function<void(TrainingSetup&)>& change = {}) {
  TrainingSetup setup = find_task(task)->setup;
  if (change) change(setup);
  TrainingRun run(setup, std::make_shared<TaskData>(*find_task(task)));
  while (!run.is_done()) run.step();
  run.measure();
  return run;
}

double best_score(const TrainingRun& run, std::size_t pattern) {
  double best = 0;
  for (const auto& layer : run.measurements().back().patterns[pattern])
    best = std::max(best, std::ranges::max(layer));
  return best;
}

TEST(Task, ReachesItsGoalWithItsOwnSetup) {
  for (const char* task : {"previous-token", "reverse", "recall", "induction"}) {
    const TrainingRun run = trained(task);
    EXPECT_GE(run.measurements().back().accuracy, 0.99) << task;
    for (std::size_t p = 0; p < run.data().task().n_patterns(); ++p)
      EXPECT_GT(best_score(run, p), 0.5) << task << " " << run.data().task().patterns[p];
    EXPECT_THAT(run.milestones(), Contains(Field(&Milestone::words, "99 % of fresh answers are right")))
        << task;
  }
}

TEST(Task, WhyMaskIsSolvedOnlyWithoutMask) {
  EXPECT_NEAR(trained("why-mask").measurements().back().fresh_loss, std::log(16), 0.02);
  const TrainingRun cheat = trained("why-mask", [](TrainingSetup& s) { s.causal = false; });
  EXPECT_LT(cheat.measurements().back().fresh_loss, 0.05);
  EXPECT_GT(best_score(cheat, 0), 0.5);
}

TEST(Task, IsOverfittedWithoutDropout) {
  const TrainingRun with = trained("dropout"),
                    without = trained("dropout", [](TrainingSetup&s) { s.dropout = 0; });
  EXPECT_GE(with.measurements().back().accuracy, without.measurements().back().accuracy + 0.2);
  EXPECT_LT(without.measurements().back().loss, 0.1);
}

TEST(Task, LearnsATextAndTestsOnItsEnd) {
  std::string text;
  for (int k = 0; k < 40; ++k) text += "das Öl läuft. ";
  const auto data = std::make_shared<TaskData>(text, "text.txt");
  EXPECT_EQ(data->letters().size(), 11u);
  EXPECT_TRUE(data->has_fresh_text());
  TrainingSetup setup;
  setup.n_steps = 150, setup.n_layers = 2, setup.positions = PositionChoice::rotary;
  TrainingRun run(setup, data);
  while (!run.is_done()) run.step();
  EXPECT_GT(run.measurements().back().accuracy, 0.9);
}

TEST(Task, RefusesTextsThatCannotBeLearned) {
  for (const auto& [text, message] : std::vector<std::pair<std::string, std::string>>{
           {"ab", "a: expected a text of 3 to 1048576 characters, got 2"},
           {"ab\xff", "a: expected a task or a text in UTF-8, got other bytes"}})
    try {
      TaskData data(text, "a");
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), message);
    }
}

TEST(TrainingRun, IsTheSameForTheSameSetupAndGoesOnFromACopy) {
  TrainingSetup setup = find_task("recall")->setup;
  setup.n_steps = 25, setup.dropout = 0.2;
  const auto data = std::make_shared<TaskData>(*find_task("dropout"));
  TrainingRun run(setup, data);
  for (int k = 0; k < 12; ++k) run.step();
  TrainingRun copy = run;
  run.change(HeadToggle{0, 0});
  run.step();
  EXPECT_NE(run.network(), copy.network());
  run = copy;  // the edit is undone
  while (!run.is_done()) run.step(), copy.step();
  TrainingRun other(setup, data);
  while (!other.is_done()) other.step();
  EXPECT_EQ(run.network(), copy.network());
  EXPECT_EQ(run.network(), other.network());
  EXPECT_EQ(run.losses(), other.losses());
  setup.seed = 2;
  EXPECT_NE(TrainingRun(setup, data).network().token_embedding,
            TrainingRun(run.network().setup, data).network().token_embedding);
}

TEST(TrainingRun, LearnsOnWithAnAblatedHead) {
  TrainingRun run = trained("previous-token");
  EXPECT_GT(run.measurements().back().accuracy, 0.99);
  run.change(HeadToggle{0, 0});
  EXPECT_LT(run.measurements().back().accuracy, 0.2) << "measured at once";
  const NetworkPass without(run.network(), run.fresh_samples());
  EXPECT_LT(without.accuracy(), 0.2);
  run.step();
  EXPECT_GT(run.losses().back(), 2);
}

TEST(TrainingRun, KeepsSnapshotsWithinItsMemory) {
  TrainingSetup setup = find_task("previous-token")->setup;
  setup.n_steps = 37;
  const std::size_t max_bytes = 300'000;
  TrainingRun run(setup, std::make_shared<TaskData>(*find_task("previous-token")), max_bytes);
  while (!run.is_done()) {
    run.step();
    ASSERT_LE(run.snapshot_bytes(), max_bytes);
  }
  const auto kept = run.snapshots();
  EXPECT_EQ(kept.front()->step, 0u);
  EXPECT_EQ(kept.back()->step, 37u);
  EXPECT_GT(kept.size(), 6u);
  for (std::size_t k = 0; k + 1 < kept.size(); ++k) EXPECT_EQ(kept[k]->step, k * run.snapshot_interval());
  EXPECT_EQ(run.restored(*kept.front()).token_embedding,
            TrainingRun(setup, std::make_shared<TaskData>(run.data())).network().token_embedding);
  const NetworkPass now(run.network(), run.fresh_samples()),
      last(run.restored(*kept.back()), run.fresh_samples());
  EXPECT_NEAR(now.loss(), last.loss(), 1e-5);
}

TEST(TrainingRun, StopsAtTheStepAtWhichItDivergesAndKeepsTheLastGoodNetwork) {
  TrainingSetup setup = find_task("previous-token")->setup;
  setup.mistake = "mask_hides_diagonal";
  TrainingRun nothing(setup, std::make_shared<TaskData>(*find_task("previous-token")));
  nothing.step();
  EXPECT_EQ(nothing.diverged_at(), 0u);
  EXPECT_TRUE(nothing.is_done());
  EXPECT_EQ(nothing.n_steps(), 0u);

  TrainingRun run = trained("previous-token", [](TrainingSetup& s) { s.n_steps = 15; });
  const Network good = run.network();
  run.change(MatrixChange{"unembedding", arma::mat(32, 16, arma::fill::value(1e308))});
  run.step();
  ASSERT_EQ(run.diverged_at(), 15u);
  run.change(MatrixChange{"unembedding", good.unembedding});
  run.step();
  EXPECT_EQ(run.n_steps(), 16u) << "it goes on once the numbers are good";
  EXPECT_EQ(reopen_run(run_session(saved_run(run)), "run.json", StopToken()).run->network(), run.network());
}

TEST(TrainingRun, ShowsAnotherHeadTakeOver) {
  TrainingRun run = trained("induction");
  const auto& now = run.measurements().back();
  const std::size_t head = now.patterns[1][1][1] > now.patterns[1][1][0] ? 1 : 0;
  run.change(HeadToggle{1, head});
  EXPECT_LT(run.measurements().back().accuracy, solved);
  for (int k = 0; k < 100; ++k) run.step();
  const Milestone& last = run.milestones().back();
  EXPECT_EQ(last.words, milestone_words(run.data().task(), 2).back());
  EXPECT_THAT(last.detail, testing::HasSubstr("steps later"));
  EXPECT_GT(run.measurements().back().accuracy, 0.99);
}

TEST(TrainingRun, ChangesItsOptionsWhileItLearns) {
  TrainingRun run = trained("induction", [](TrainingSetup& s) { s.n_steps = 4, s.batch = 2; });
  TrainingSetup setup = run.network().setup;
  setup.causal = false, setup.mistake = "no_scale", setup.dropout = 0.2;
  const Network before = run.network();
  run.change(setup);
  run.step();
  EXPECT_FALSE(run.network().layers[1].attention.mask.causal);
  EXPECT_EQ(run.restored(*run.snapshots()[4]).setup, setup);
  EXPECT_EQ(run.restored(*run.snapshots()[3]).layers[0].attention.mask.causal, true);
  setup = before.setup;
  run.change(setup);
  Network now = run.network();
  const Network fresh(setup, now.n_vocabulary(), now.n_tokens());
  for (std::size_t l = 0; l < 2; ++l) {
    now.layers[l].attention.projections = fresh.layers[l].attention.projections;
    EXPECT_EQ(now.layers[l].attention, fresh.layers[l].attention) << "nothing is left of them";
  }
  setup.n_layers = 3;
  EXPECT_THROW(run.change(setup), Error);
  EXPECT_THROW(run.change(HeadToggle{2, 0}), Error);
  EXPECT_THROW(run.change(MatrixChange{"unembedding", arma::mat(2, 2)}), Error);
}

TEST(RunSession, IsLearnedAgainToTheSameNumbers) {
  TrainingRun run = trained("recall", [](TrainingSetup& s) { s.n_steps = 12, s.n_heads = 2; });
  run.change(HeadToggle{1, 1});
  for (int k = 0; k < 3; ++k) run.step();
  TrainingSetup setup = run.network().setup;
  setup.causal = false, setup.rate = 0.01, setup.optimizer = OptimizerChoice::sgd;
  run.change(setup);
  run.change(MatrixChange{"layers.1.query_bias", arma::mat(1, 32, arma::fill::value(0.1))});
  for (int k = 0; k < 3; ++k) run.step();
  const std::string text = run_session(saved_run(run));
  EXPECT_TRUE(is_run_session(text));
  const ReopenedRun again = reopen_run(text, "run.json", StopToken());
  EXPECT_EQ(again.note, "");
  EXPECT_EQ(again.run->network(), run.network());
  EXPECT_EQ(again.run->losses(), run.losses());
  EXPECT_EQ(run_session(saved_run(*again.run)), text);
  std::string other = text;
  other.replace(other.find("\"loss\": ") + 8, 1, "9");
  EXPECT_THAT(reopen_run(other, "run.json", StopToken()).note, testing::HasSubstr("rounds otherwise"));
}

TEST(RunSession, SaysWhatIsWrongWithAFile) {
  const std::string good =
      run_session(saved_run(trained("why-mask", [](TrainingSetup& s) { s.n_steps = 1; })));
  for (const auto& [part, bad, message] : std::vector<std::array<std::string, 3>>{
           {"\"why-mask\"", "\"none\"", "run.json: task: expected previous-token, why-mask"},
           {"\"layers\": 1", "\"layers\": 9", "run.json: setup: --layers: expected 1 to 3, got 9"},
           {"\"changes\": []",
            "\"changes\": [{\"step\": 0, \"diverged\": false, \"head\": [0, 4], \"on\": false}]",
            "run.json: there is no head 0.4"},
           {"\"training_run\": 1", "\"training_run\": 2", "run.json: training_run: expected version 1"}}) {
    std::string text = good;
    text.replace(text.find(part), part.size(), bad);
    try {
      reopen_run(text, "run.json", StopToken());
      ADD_FAILURE() << bad;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), testing::StartsWith(message));
    }
  }
}

TEST(TrainingSetup, NamesTheOptionThatCannotBeTrained) {
  const auto message = [](const std::function<void(TrainingSetup&)>& change) {
    TrainingSetup setup;
    change(setup);
    try {
      Network network(setup, 16, 24);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(message([](TrainingSetup& s) { s.n_layers = 4; }), "--layers: expected 1 to 3, got 4");
  EXPECT_EQ(message([](TrainingSetup& s) { s.n_heads = 3; }),
            "--width: expected a multiple of the 3 heads, got 32");
  EXPECT_EQ(message([](TrainingSetup& s) { s.n_heads = 4, s.n_kv_heads = 3; }),
            "--kv-heads: expected a divisor of the 4 heads, got 3");
  EXPECT_EQ(message([](TrainingSetup& s) { s.rate = std::nan(""); }),
            "--rate: expected 1e-06 to 10, got nan");
  EXPECT_EQ(message([](TrainingSetup& s) { s.mistake = "none"; }),
            "--mistake: there is no bug \"none\"; attnscope mistakes lists them");
  EXPECT_EQ(message([](TrainingSetup& s) { s.mistake = "groups_tiled"; }).substr(0, 9), "--mistake");
}

TEST(TrainingSetup, TrainsEveryBugThatTheModelCanHave) {
  // The numbers that a bug cannot train on are not numbers from the first step on.
  TrainingSetup setup = find_task("induction")->setup;
  setup.d_model = 16, setup.n_kv_heads = 1, setup.dropout = 0.1, setup.batch = 2, setup.n_steps = 2;
  const auto data = std::make_shared<TaskData>(*find_task("induction"));
  std::size_t n_trained = 0;
  for (const bugs::Bug* bug : bugs::offered_bugs()) {
    setup.mistake = bug->name;
    try {
      TrainingRun run(setup, data);
      while (!run.is_done()) run.step();
      EXPECT_EQ(run.n_steps(), run.diverged_at().value_or(2)) << bug->name;
      ++n_trained;
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), "--mistake " + setup.mistake + ": cannot be made in this model");
    }
  }
  EXPECT_GT(n_trained, 40u);
}

}  // namespace
}  // namespace core::training
