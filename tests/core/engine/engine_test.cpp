#include "core/engine/engine.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "core/base/error.hpp"
#include "tests/core/engine/agreement.hpp"
#include "tests/core/graph/any_model.hpp"
#include "tests/support/error_of.hpp"

namespace core::attention::fast {
namespace {

using support::Random;

// Both sides round sums of up to some hundred products of numbers of size ten: 10⁻¹⁶ · 10 · √100 of a score,
// and as much of a weight's relative error. Random scales and sizes take that a hundred times further.
constexpr double rounding = 1e-12;

testing::AssertionResult computes(Engine& engine, const Model& model, std::size_t sequence = 0) {
  engine.compute(model, sequence);
  if (engine.trace().sequence != sequence)
    return testing::AssertionFailure() << "its sequence is " << engine.trace().sequence;
  return agree(model, engine.trace(), attend(model, sequence), rounding);
}

TEST(Engine, AgreesWithAttendOnModelsWithEveryOption) {
  Random random(3);
  Engine engine(2);
  for (int k = 0; k < 1000; ++k) {
    const Model m = explain::any_model(random);
    for (std::size_t s = 0; s < m.sequences.size(); ++s) ASSERT_TRUE(computes(engine, m, s)) << "model " << k;
  }
}

TEST(Engine, AgreesWithAttendOnShapesThatCutTilesInTheMiddle) {
  Random random(4);
  Engine engine(2);
  for (const std::size_t n : {1, 2, 7, 8, 9, 23, 24, 25, 47, 49, 65, 130})
    for (const std::size_t d_head : {1, 3, 8, 11, 16, 33}) {
      Model m = calm_model(random, n, 5, 2 * d_head, 2);
      for (const bool causal : {true, false}) {
        m.mask.causal = causal;
        ASSERT_TRUE(computes(engine, m)) << n << " tokens, d_head " << d_head << ", causal " << causal;
      }
    }
}

TEST(Engine, AgreesWithAttendOnMasksOfEveryRule) {
  Random random(41);
  Engine engine(2);
  for (int k = 0; k < 200; ++k) {
    Model m = calm_model(random, 1 + support::below(random, 60), 5, 6, 2);
    m.sequences.push_back(m.sequences[0]);
    m.mask.causal = support::coin(random);
    support::add_mask_rules(random, m);
    for (std::size_t s = 0; s < 2; ++s) ASSERT_TRUE(computes(engine, m, s)) << "model " << k;
  }
}

TEST(Engine, AgreesWithAttendOnWhatModelsOfTodayAdd) {
  Random random(12);
  Engine engine(2);
  for (int k = 0; k < 300; ++k) {
    Model m = calm_model(random, 1 + support::below(random, 40), 6, 24, 6);
    if (support::coin(random)) support::add_memory(random, m);
    support::add_groups(random, m);
    support::add_additions(random, m);
    if (support::coin(random)) support::add_mask_rules(random, m);
    m.dropout.rate = 0.25 * static_cast<double>(support::below(random, 3));
    ASSERT_TRUE(covers(m));
    engine.compute(m);
    ASSERT_TRUE(agree(m, engine.trace(), attend(m), 1e-12)) << "model " << k;
  }
}

TEST(Engine, AgreesWithAttendOnWindowsThatLeaveBlocksOfKeysOut) {
  Random random(13);
  Engine engine(2);
  for (const std::size_t left : {0, 3, 24, 100}) {
    Model m = calm_model(random, 300, 8, 12, 3);
    m.mask.window = {left, left / 2};
    m.mask.causal = left % 2 == 0;
    m.mask.hidden_keys = {{5, 6, 7, 120, 200}};
    m.additions.score_cap = 2;
    engine.compute(m);
    ASSERT_TRUE(agree(m, engine.trace(), attend(m), 1e-12)) << left;
  }
}

TEST(Engine, LeavesNumbersThatOverflowToAttend) {
  Random random(6);
  Engine engine(2);
  for (const double strange : {1e200, -1e200, 1e308, -1e-320}) {
    Model m = calm_model(random, 9, 4, 4, 2);
    m.sequences[0].embeddings.edit()(5, 1) = strange;
    ASSERT_TRUE(computes(engine, m)) << strange;
    m.projections->value.weight.edit()(0, 3) = strange;
    ASSERT_TRUE(computes(engine, m)) << strange;
  }
}

TEST(Engine, RowsAreTheStagesOrWhatWeightsAreMadeOf) {
  Random random(7);
  const Model m = calm_model(random, 30, 4, 6, 2);
  Engine engine(1);
  engine.compute(m);
  for (const Stage stage : {Stage::masked_scores, Stage::weights, Stage::dropped_weights})
    for (std::size_t h = 0; h < 2; ++h) {
      const RowView view = engine.rows(stage, h);
      const arma::mat& expected = info(stage).matrix(engine.trace(), h);
      ASSERT_NE(view.numbers, nullptr);
      ASSERT_EQ(view.n_rows, 30u);
      for (std::size_t i = 0; i < 30; ++i) {
        std::vector<double> row(view.numbers + i * view.stride, view.numbers + i * view.stride + 30);
        if (view.sums) {
          for (double& number : row) number -= view.largest[i];
          view.exponentials(row.data(), row.size());
          for (double& number : row) number /= view.sums[i];
        }
        for (std::size_t j = 0; j < 30; ++j) ASSERT_EQ(row[j], expected(i, j));
      }
    }
  EXPECT_EQ(engine.rows(Stage::masked_scores, 0).sums, nullptr);
  EXPECT_EQ(engine.rows(Stage::scores, 0).numbers, nullptr);
}

TEST(Engine, RowsAndCellsReadAloneAreThoseOfTheWholeStage) {
  Random random(12);
  Model m = calm_model(random, 41, 4, 6, 2);
  m.dropout.rate = 0.5, m.dropout.training = true;
  for (const bool causal : {true, false}) {
    m.mask.causal = causal;
    Engine engine(1);
    engine.compute(m);
    for (const StageInfo& stage : stages()) {
      if (!stage.present(m)) continue;
      const StageMatrix& numbers = stage.matrix(engine.trace(), 1);
      std::vector<arma::rowvec> rows;
      arma::mat cells(numbers.n_rows(), numbers.n_cols());
      for (std::size_t i = 0; i < cells.n_rows; ++i) {
        rows.push_back(numbers.row(i));
        for (std::size_t j = 0; j < cells.n_cols; ++j) cells(i, j) = numbers(i, j);
      }
      const arma::mat& whole = *numbers;
      EXPECT_TRUE(arma::all(arma::vectorise(cells == whole))) << stage.name;
      for (std::size_t i = 0; i < cells.n_rows; ++i)
        EXPECT_TRUE(arma::all(rows[i] == whole.row(i))) << stage.name << ", row " << i;
    }
  }
}

TEST(Engine, CopyOfItsTraceStaysWhatItWas) {
  Random random(8);
  Model m = calm_model(random, 12, 4, 4, 2);
  Engine engine(1);
  engine.compute(m);
  const Trace copy = engine.trace(), before = attend(m);
  m.sequences[0].embeddings.edit()(3, 1) += 1;
  engine.update(m);
  EXPECT_TRUE(agree(m, copy, before, rounding));
  EXPECT_TRUE(agree(m, engine.trace(), attend(m), rounding));
}

TEST(Engine, CanBeCalledOffAndComputesAgain) {
  Random random(9);
  const Model m = calm_model(random, 200, 8, 8, 2);
  Engine engine(2);
  core::Token progress;
  core::Token stopped;
  stopped.stop();
  EXPECT_FALSE(engine.compute(m, 0, &stopped));
  EXPECT_EQ(engine.rows(Stage::weights, 0).numbers, nullptr);
  EXPECT_TRUE(engine.compute(m, 0, &progress));
  EXPECT_EQ(progress.share(), 1);
  EXPECT_TRUE(agree(m, engine.trace(), attend(m), rounding));
}

TEST(Engine, GoesFromThreadToThread) {
  Random random(10);
  Model m = calm_model(random, 60, 8, 8, 2);
  Engine engine(2);
  std::thread([&] { engine.compute(m); }).join();
  Engine moved = std::move(engine);
  m.projections->query.weight.edit()(1, 1) += 0.5;
  std::thread([&] { moved.update(m); }).join();
  EXPECT_TRUE(agree(m, moved.trace(), attend(m), rounding));
}

TEST(Engine, GivesCellsOfTheOutputWhileAnotherThreadReadsAllOfIt) {
  Random random(12);
  Model m = calm_model(random, 150, 24, 24, 3);
  Engine engine(3);
  engine.compute(m);
  for (std::size_t round = 0; round < 60; ++round) {
    arma::mat weight = m.projections->value.weight;
    weight(round % weight.n_rows, round % weight.n_cols) += 0.25;
    m.projections->value.weight = weight;
    engine.update(m);
    const Trace& trace = engine.trace();
    std::vector<arma::mat> read(3, arma::mat(m.n_tokens(), m.d_out()));
    {
      std::vector<std::jthread> readers;
      for (std::size_t reader = 0; reader < read.size(); ++reader)
        readers.emplace_back([&trace, &numbers = read[reader], reader] {
          if (reader == 0) numbers = *trace.output;
          for (std::size_t i = 0; i < numbers.n_rows; ++i)
            for (std::size_t j = 0; j < numbers.n_cols; ++j) numbers(i, j) = trace.output(i, j);
        });
    }
    const arma::mat expected = *attend(m).output;
    for (const arma::mat& numbers : read)
      ASSERT_TRUE(arma::approx_equal(numbers, expected, "both", rounding, rounding)) << round;
  }
}

TEST(Engine, RefusesWhatAttendRefusesAndKeepsWhatItHeld) {
  Random random(11);
  const Model m = calm_model(random, 5, 4, 4, 2);
  Engine engine(1);
  engine.compute(m);
  Model wrong = m;
  wrong.n_heads = 3;
  EXPECT_THROW(engine.update(wrong), Error);
  EXPECT_THROW(engine.update(m, 1), Error);
  EXPECT_TRUE(agree(m, engine.trace(), attend(m), rounding));
}

TEST(EngineBytes, NameASquareForEachHead) {
  EXPECT_GE(engine_bytes(2048, 768, 12), 12u * 2048 * 2048 * 8);
  EXPECT_LE(engine_bytes(2048, 768, 12), 1.6 * 12 * 2048 * 2048 * 8);
}

}  // namespace
}  // namespace core::attention::fast
