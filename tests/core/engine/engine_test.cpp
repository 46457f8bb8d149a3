// The engine against the formulas: full passes, updates, differences of two models.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/engine/engine.hpp"
#include "core/engine/implementation.hpp"
#include "core/graph/validation.hpp"
#include "tests/core/editing/random_edit.hpp"
#include "tests/core/engine/agreement.hpp"
#include "tests/core/graph/any_model.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/random_model.hpp"

namespace core::attention::fast {
namespace {

using support::below;
using support::Random;

// Both sides round sums of up to some hundred products of numbers of size ten: 10⁻¹⁶ · 10 · √100 of a score,
// and the same relative error of a weight. Random scales and sizes need a hundred times that.
constexpr double rounding = 1e-12;
// Sums in float32 are 2²⁹ times as coarse: 10⁻⁵ of a score, more where terms cancel.
constexpr double rounding32 = 1e-4, least32 = 0.01;

/// Compares traces, allowing for rounding of large scores: scores of a million cost 10⁻⁹ of a weight.
testing::AssertionResult agree_within_rounding(const Model& m, const Trace& found, const Trace& reference,
                                               double in_float64) {
  double largest_score = 0;
  for (std::size_t h = 0; h < m.n_heads; ++h)
    largest_score = std::max(largest_score, max_abs_finite(*reference.at(Stage::scaled_scores, h)));
  in_float64 = std::max(in_float64, 8 * std::numeric_limits<double>::epsilon() * largest_score);
  if (m.arithmetic.precision == Precision::float64) return agree(m, found, reference, in_float64);
  return agree(m, found, reference, rounding32, least32);
}

/// Compares the engine with attend() in float64 and in float32.
testing::AssertionResult computes(Engine& engine, Model m, std::size_t sequence = 0) {
  for (const Precision precision : {Precision::float64, Precision::float32}) {
    m.arithmetic.precision = precision;
    engine.compute(m, sequence);
    if (engine.trace().sequence != sequence)
      return testing::AssertionFailure() << "its sequence is " << engine.trace().sequence;
    const auto result = agree_within_rounding(m, engine.trace(), attend(m, sequence), rounding);
    if (!result) return testing::AssertionFailure() << name_of(precision) << ": " << result.message();
  }
  return testing::AssertionSuccess();
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
    if (support::coin(random)) support::add_cross_attention_source(random, m);
    support::add_groups(random, m);
    support::add_additions(random, m);
    if (support::coin(random)) support::add_mask_rules(random, m);
    m.dropout.rate = 0.25 * static_cast<double>(support::below(random, 3));
    const bool is_by_head = !m.additions.normalize || m.additions.normalize->over == NormScope::head;
    ASSERT_EQ(supports(m), is_by_head);
    ASSERT_TRUE(computes(engine, m)) << "model " << k;
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
    m.additions.softcap = 2;
    ASSERT_TRUE(computes(engine, m)) << left;
  }
}

/// As close as PyTorch's float32 is to float64: 6e-7 of the largest output, 1.4e-6 of a weight, at 1024
/// tokens and 768 columns.
TEST(Engine, ComputesFloat32AsCloselyAsFloat32Can) {
  Random random(21);
  Model m = calm_model(random, 200, 768, 768, 12);
  const Trace exact = attend(m);
  m.arithmetic.precision = Precision::float32;
  Engine engine(2);
  engine.compute(m);
  EXPECT_TRUE(agree(m, engine.trace(), exact, 4e-6));
  for (int k = 0; k < 100; ++k) {
    const std::size_t row = below(random, 200), column = below(random, 768);
    for (SharedMatrix* matrix : {&m.sequences[0].embeddings, &m.projections->query.weight,
                                 &m.projections->value.weight, &m.projections->output->weight}) {
      const double before = matrix->at(row, column);
      for (const double number : {before + 1, before}) {
        matrix->set(row, column, number);
        EXPECT_FALSE(engine.update(m).everything);
      }
    }
  }
  EXPECT_TRUE(agree(m, engine.trace(), exact, 4e-6));
}

TEST(Engine, LeavesNumbersThatOverflowToAttend) {
  Random random(6);
  Engine engine(2);
  for (const double strange : {1e200, -1e200, 1e308, -1e-320, 3e38, 1e25}) {
    Model m = calm_model(random, 9, 4, 4, 2);
    m.sequences[0].embeddings.edit()(5, 1) = strange;
    ASSERT_TRUE(computes(engine, m)) << strange;
    m.projections->value.weight.edit()(0, 3) = strange;
    ASSERT_TRUE(computes(engine, m)) << strange;
  }
}

TEST(Engine, RowsAreTheStagesOrWhatWeightsAreMadeOf) {
  Random random(7);
  Model m = calm_model(random, 30, 4, 6, 2);
  Engine engine(1);
  for (const Precision precision : {Precision::float64, Precision::float32}) {
    m.arithmetic.precision = precision;
    engine.compute(m);
    const double close = precision == Precision::float64 ? 0 : 1e-6;  // row views use float64 exponentials
    for (const Stage stage : {Stage::masked_scores, Stage::weights, Stage::dropped_weights})
      for (std::size_t h = 0; h < 2; ++h) {
        const RowView view = engine.rows(stage, h);
        const arma::mat& expected = engine.trace().at(stage, h);
        ASSERT_TRUE(view);
        ASSERT_EQ(view.n_rows, 30u);
        for (std::size_t i = 0; i < 30; ++i) {
          std::vector<double> memory;
          const double* numbers = view.read(i, 0, 30, memory);
          std::vector<double> row(numbers, numbers + 30);
          if (view.sums) {
            for (double& number : row) number -= view.largest[i];
            view.exponentials(row.data(), row.size());
            for (double& number : row) number /= view.sums[i];
          }
          for (std::size_t j = 0; j < 30; ++j)
            if (row[j] != expected(i, j)) {
              ASSERT_NEAR(row[j], expected(i, j), close);
            }
        }
      }
    EXPECT_EQ(engine.rows(Stage::masked_scores, 0).sums, nullptr);
    EXPECT_FALSE(engine.rows(Stage::scores, 0));
  }
}

TEST(Engine, RowsAndCellsReadAloneAreThoseOfTheWholeStage) {
  Random random(12);
  Model m = calm_model(random, 41, 4, 6, 2);
  m.dropout.rate = 0.5, m.dropout.training = true;
  for (const Precision precision : {Precision::float64, Precision::float32}) {
    m.arithmetic.precision = precision;
    m.mask.causal = precision == Precision::float64;
    Engine engine(1);
    engine.compute(m);
    for (const StageInfo& stage : stages()) {
      if (!stage.present(m)) continue;
      const StageMatrix& numbers = engine.trace().at(stage.stage, 1);
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
  core::StopToken progress;
  core::StopToken stopped;
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
          if (reader == 0) numbers = *trace.at(Stage::output);
          for (std::size_t i = 0; i < numbers.n_rows; ++i)
            for (std::size_t j = 0; j < numbers.n_cols; ++j) numbers(i, j) = trace.at(Stage::output)(i, j);
        });
    }
    const arma::mat expected = *attend(m).at(Stage::output);
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

using support::coin;
using support::number;

constexpr double allowed = 1e-10;  // relative, whatever was edited before

/// Edits a random number, switch or mask cell; now and then the number is far larger than the others.
void edit_one(Random& random, Model& m) {
  const bool is_float64 = m.arithmetic.precision == Precision::float64;  // enough digits for scores of 10⁶
  const auto set = [&](SharedMatrix& matrix) {
    const double size = below(random, 200) == 0 ? is_float64 ? 1e6 : 30 : below(random, 20) == 0 ? 10 : 1;
    matrix.set(below(random, matrix->n_rows), below(random, matrix->n_cols), size * number(random));
  };
  Projections& p = *m.projections;
  switch (below(random, 17)) {
    case 0:
    case 1:
    case 2:
    case 3:
      return set(m.sequences[0].embeddings);
    case 4:
      if (m.has_key_embeddings()) return set(m.sequences[0].key_embeddings);
      return m.sequences[0].embeddings.edit().row(below(random, m.n_tokens())).randu(), void();
    case 5:
    case 6:
      return set(p.query.weight);
    case 7:
      return set(p.key.weight);
    case 8:
      return set(p.value.weight);
    case 9:
      return set(p.output->weight);
    case 10:
      return set(*p.key.bias);
    case 11: {
      const std::size_t row = below(random, m.n_tokens()), column = below(random, m.n_keys());
      m = editing::apply(m, editing::SwitchMaskCell{row, column, coin(random)});
      return;
    }
    case 16:
      m.mask = {};
      if (coin(random)) support::add_mask_rules(random, m);
      return;
    case 12:
      m.dropout.rate = below(random, 3) * 0.25;
      return;
    case 13:
      m.dropout.seed = random();
      return;
    case 14:
      m.dropout.training = coin(random);
      return;
    default:
      if (below(random, 8) == 0) m.scores = coin(random) ? ScoreRule::uniform : ScoreRule::query_key;
      if (below(random, 8) == 0) m.mask.causal = !m.mask.causal;
      if (below(random, 8) == 0) m.mask.empty_rows = coin(random) ? EmptyRows::zeros : EmptyRows::nan;
      m.scale.rule = static_cast<ScaleRule>(below(random, 3));
  }
}

/// Makes n_edits edits and undos, each followed by an update, and compares the trace after each `every`.
void edit_and_compare_in(Precision precision, Model m, std::size_t n_edits, std::size_t every,
                         unsigned seed) {
  Random random(seed);
  m.arithmetic.precision = precision;
  Engine engine(2);
  engine.compute(m);
  std::vector<Model> past;
  for (std::size_t k = 1; k <= n_edits; ++k) {
    if (!past.empty() && below(random, 5) == 0) {
      m = past.back();
      past.pop_back();
    } else {
      past.push_back(m);
      edit_one(random, m);
    }
    if (past.size() > 40) past.erase(past.begin(), past.begin() + 20);
    engine.update(m);
    if (coin(random)) engine.output();
    if (k % every != 0) continue;
    ASSERT_TRUE(agree_within_rounding(m, engine.trace(), attend(m), allowed))
        << name_of(precision) << " after " << k << " edits";
  }
}

void edit_and_compare(const Model& m, std::size_t n_edits, std::size_t every, unsigned seed) {
  edit_and_compare_in(Precision::float64, m, n_edits, every, seed);
  edit_and_compare_in(Precision::float32, m, n_edits, every, seed);
}

TEST(Update, AgreesWithAttendAfterTenThousandEdits) {
  Random random(1);
  edit_and_compare(calm_model(random, 6, 3, 4, 2), 10000, 1, 2);
  edit_and_compare(calm_model(random, 33, 8, 12, 3), 10000, 20, 3);
  Model wide = calm_model(random, 20, 5, 6, 3);
  wide.projections->output = support::linear(random, 6, 13, true);
  edit_and_compare(wide, 2000, 10, 5);
  edit_and_compare(calm_model(random, 150, 16, 16, 2), 1500, 100, 4);
}

TEST(Update, AgreesWithAttendOnWhatModelsOfTodayAdd) {
  Random random(9);
  for (unsigned k = 0; k < 60; ++k) {
    Model m = calm_model(random, 1 + below(random, 20), 6, 24, 6);
    if (below(random, 3) == 0) support::add_cross_attention_source(random, m);
    support::add_groups(random, m);
    support::add_additions(random, m);
    const bool is_by_head = !m.additions.normalize || m.additions.normalize->over == NormScope::head;
    ASSERT_EQ(supports(m), is_by_head);
    ASSERT_NO_FATAL_FAILURE(edit_and_compare(m, 120, 3, k)) << "model " << k;
  }
}

/// Makes n_edits edits of a 40-token model, each followed by an update; the final trace must be attend()'s.
template <class Edit, class Check>
void update_after_each(unsigned seed, int n_edits, const Edit& edit, const Check& check) {
  Random random(seed);
  Model m = calm_model(random, 40, 8, 8, 2);
  Engine engine(2);
  engine.compute(m);
  for (int k = 0; k < n_edits; ++k) {
    edit(random, m, k);
    ASSERT_NO_FATAL_FAILURE(check(engine.update(m), k));
  }
  EXPECT_TRUE(agree(m, engine.trace(), attend(m), allowed));
}

TEST(Update, OfASliderThatIsDraggedToAndFroDoesNotDrift) {
  update_after_each(
      5, 10000, [](Random&, Model& m, int k) { m.sequences[0].embeddings.set(3, 2, 3 * std::sin(k * 0.37)); },
      [](const UpdateResult& change, int k) {
        if (k != 5) return;
        EXPECT_FALSE(change.everything);
        EXPECT_EQ(change.heads[1].column, 3u);
        EXPECT_EQ(change.heads[1].rows.front(), 3u);
      });
}

TEST(Update, OfEmbeddingNumbersNeverNeedsAFullPass) {
  update_after_each(
      8, 5000,
      [](Random& random, Model& m, int) {
        m.sequences[0].embeddings.set(below(random, 40), below(random, 8), number(random));
      },
      [](const UpdateResult& change, int k) {
        ASSERT_FALSE(change.everything) << "after " << k << " edits";
      });
}

TEST(Update, TakesAnyEditOfTheEditor) {
  Random random(6);
  Engine engine(2);
  Model m = calm_model(random, 5, 3, 4, 2);
  for (int k = 0; k < 10000; ++k) {
    try {
      m = editing::apply(m,
                         editing::random_edit(random, m, below(random, std::variant_size_v<editing::Edit>)));
    } catch (const Error&) {
      continue;
    }
    const std::size_t sequence = below(random, m.sequences.size());
    const auto why = check(m);
    if (why) continue;
    engine.update(m, sequence);
    ASSERT_TRUE(agree(m, engine.trace(), attend(m, sequence), allowed)) << "edit " << k;
  }
}

/// Everything the change does not name is unchanged, so its picture need not be sent again.
TEST(Update, NamesEveryRowAndColumnThatItChanged) {
  Random random(7);
  Model m = calm_model(random, 30, 8, 8, 2);
  Engine engine(2);
  engine.compute(m);
  for (int k = 0; k < 300; ++k) {
    struct Kept {
      std::vector<double> scores, largest, sums;
    };
    const auto kept = [&](std::size_t h) {
      const RowView s = engine.rows(Stage::masked_scores, h), w = engine.rows(Stage::weights, h);
      return Kept{{s.numbers, s.numbers + 30 * s.stride}, {w.largest, w.largest + 30}, {w.sums, w.sums + 30}};
    };
    const std::vector<Kept> before{kept(0), kept(1)};
    const std::size_t stride = engine.rows(Stage::weights, 0).stride;
    edit_one(random, m);
    const UpdateResult change = engine.update(m);
    if (change.everything) continue;
    for (std::size_t h = 0; h < 2; ++h) {
      const HeadChange& c = change.heads[h];
      if (c.all) continue;
      const Kept after = kept(h);
      for (std::size_t i = 0; i < 30; ++i) {
        ASSERT_TRUE(i >= c.first_changed_sum || before[h].sums[i] == after.sums[i]);
        if (std::find(c.rows.begin(), c.rows.end(), i) != c.rows.end()) continue;
        ASSERT_TRUE(i >= c.first_changed_sum || before[h].largest[i] == after.largest[i]);
        for (std::size_t j = 0; j < 30; ++j) {
          if (c.column == j) continue;
          const std::size_t at = i * stride + j;
          ASSERT_EQ(before[h].scores[at], after.scores[at]) << i << ", " << j;
        }
      }
    }
  }
}

TEST(ModelDifference, OfOneNumberIsNamedWithItsIncrement) {
  Random random(8);
  const Model before = calm_model(random, 4, 3, 4, 2);
  Model after = before;
  after.projections->key.bias->edit()(0, 3) += 0.5;
  const ModelDifference d = difference(before, after, 0);
  EXPECT_EQ(d.recompute, RecomputeScope::projection_number);
  EXPECT_EQ(d.projected, Qkv::keys);
  EXPECT_TRUE(d.is_bias);
  EXPECT_EQ(d.column, 3u);
  EXPECT_NEAR(*d.increment, 0.5, 1e-15);
  after.sequences[0].embeddings.edit()(0, 0) += 1;
  EXPECT_EQ(difference(before, after, 0).recompute, RecomputeScope::everything);
}

TEST(ModelDifference, OfMasksWithManyCellsTakesNoLongerThanReadingThem) {
  Random random(9);
  Model before = calm_model(random, 400, 1, 1, 1);
  for (std::size_t i = 0; i < 400; ++i)
    for (std::size_t j = 0; j < i; ++j) before.mask.cells.push_back({i, j, false});
  Model after = before;
  std::erase_if(after.mask.cells, [](const MaskCell& c) { return c.row == 300 && c.column < 2; });
  after.mask.cells.back().visible = true;
  const auto start = std::chrono::steady_clock::now();
  const ModelDifference d = difference(before, after, 0);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
  EXPECT_EQ(d.recompute, RecomputeScope::mask_rows);
  EXPECT_EQ(d.mask_rows, (std::vector<std::size_t>{300, 399}));
}

}  // namespace
}  // namespace core::attention::fast
