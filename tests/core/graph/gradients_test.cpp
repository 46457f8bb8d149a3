#include "core/graph/gradients.hpp"

#include <fmt/core.h>
#include <gmock/gmock.h>

#include <cmath>

#include "core/base/error.hpp"
#include "core/graph/attend.hpp"
#include "core/graph/operations.hpp"
#include "tests/core/graph/any_model.hpp"
#include "tests/support/error_of.hpp"

namespace core::graph {
namespace {

using attention::attend;
using explain::any_model;
using explain::CellAddress;

double value_of(const Model& m, std::size_t sequence, const Target& target) {
  const Trace trace = attend(m, sequence);
  const mat& numbers = trace.at(target.stage, target.head);
  const SourceRect cells = cells_of(target, {numbers.n_rows, numbers.n_cols});
  double sum = 0;
  for (std::size_t k = 0; k < cells.count(); ++k) sum += numbers(cells.at(k).row, cells.at(k).column);
  return sum;
}

/// Returns the derivative by central differences of a function of a model with a number x.
template <class WithNumber>
double difference(double x, std::size_t sequence, const Target& target, WithNumber with_number) {
  constexpr double step = 1e-5;
  return (value_of(with_number(x + step), sequence, target) -
          value_of(with_number(x - step), sequence, target)) /
         (2 * step);
}

Model with_cell(Model m, const attention::GivenCellAddress& place, double x) {
  auto& cells = m.given.cells;
  auto at = std::ranges::lower_bound(cells, place, {}, &attention::GivenCell::place);
  if (at == cells.end() || at->place != place) at = cells.insert(at, {place, 0});
  at->value = x;
  return m;
}

/// Returns a model whose numbers are smooth functions of one another: nothing is rounded, and no two scores
/// are equal where the largest of a block matters.
Model any_smooth_model(support::Random& random) {
  Model m = any_model(random);
  m.arithmetic = {};
  if (m.scores == attention::ScoreRule::uniform)
    std::erase_if(m.bugs, [](const auto& made) {
      return std::string(made.bug->name).find("block") != std::string::npos;
    });
  return m;
}

bool is_right(double gradient, double expected, double value) {
  return std::abs(gradient - expected) <= 2e-5 * std::max({1.0, std::abs(expected), std::abs(value)});
}

TEST(Gradients, EqualCentralDifferencesWithEveryOptionAndBug) {
  support::Random random(11);
  std::size_t n_compared = 0, n_nonzero = 0, n_nan = 0;
  for (int k = 0; k < 200 && !testing::Test::HasFailure(); ++k) {
    SCOPED_TRACE("model " + std::to_string(k));
    const Model m = any_smooth_model(random);
    const std::size_t sequence = support::below(random, m.sequences.size());
    const Graph g = attention(m);
    const Trace trace = attend(m, sequence);
    std::vector<CellAddress> cells;
    explain::for_each_cell(m, trace, [&](const CellAddress& cell) { cells.push_back(cell); });
    const CellAddress of = cells[cells.size() / 2 + support::below(random, cells.size() / 2)];
    Target target{of.stage, of.head, of.row, of.column};
    if (support::coin(random)) target.column.reset();
    const Gradients all = gradients(g, m, sequence, target);
    if (const double value = value_of(m, sequence, target); std::isfinite(value))
      EXPECT_DOUBLE_EQ(all.value, value);
    else
      continue;
    const auto compare = [&](double gradient, double expected, const std::string& name) {
      if (std::isnan(gradient) || std::isnan(expected)) return void(++n_nan);  // 0 · NaN: see below
      ++n_compared, n_nonzero += expected != 0;
      EXPECT_TRUE(is_right(gradient, expected, all.value))
          << text_of(target) << " by " << name << ": " << gradient << " is not " << expected;
    };
    for (int n = 0; n < 30; ++n) {
      const CellAddress cell = cells[support::below(random, cells.size())];
      const double x = trace.at(cell.stage, cell.head)(cell.row, cell.column);
      if (cell.stage == Stage::mask || cell.stage <= Stage::key_embeddings || !(std::abs(x) < 1e5)) continue;
      const Node& node = *g.find(cell.stage);
      const attention::GivenCellAddress place{cell.stage, sequence, nth_matrix(g, node, cell.head), cell.row,
                                              cell.column};
      compare(all.stages.at(cell.stage, cell.head)(cell.row, cell.column),
              difference(x, sequence, target, [&](double y) { return with_cell(m, place, y); }),
              fmt::format("{} head {} [{},{}]", attention::info(cell.stage).name, cell.head, cell.row,
                          cell.column));
    }
    for (std::size_t name = 0; name < attention::n_matrix_names; ++name) {
      if (MatrixName(name) == MatrixName::frequencies) continue;
      const auto ref = matrix_ref(m, MatrixName(name), sequence, support::below(random, m.n_heads));
      const auto* numbers = find_matrix(m, ref);
      if (!numbers || numbers->n_cols() == 0) continue;
      for (int n = 0; n < 3; ++n) {
        const std::size_t i = support::below(random, numbers->n_rows()),
                          j = support::below(random, numbers->n_cols());
        const mat& gradient = all.of(ref);
        compare(gradient.empty() ? 0 : gradient(i, j),
                difference(numbers->at(i, j), sequence, target,
                           [&](double y) {
                             Model changed = m;
                             find_matrix(changed, ref)->edit()(i, j) = y;
                             return changed;
                           }),
                fmt::format("{}[{},{}]", symbol(MatrixName(name)), i, j));
      }
    }
  }
  EXPECT_GT(n_compared, 2000u);
  EXPECT_GT(n_nonzero, 500u);
  EXPECT_LT(n_nan, n_compared / 4);
}

TEST(Gradients, OfAnErrorAreThoseOfTheMeanSquare) {
  support::Random random(3);
  const Model m = support::model(random, 4, 3, 4, 2);
  const mat output = attend(m).at(Stage::output);
  const Gradients all = gradients(attention(m), m, 0, {Stage::output, 0, 2, std::nullopt, {1, 2, 3, 4}});
  const arma::rowvec error = output.row(2) - arma::rowvec{1, 2, 3, 4};
  EXPECT_DOUBLE_EQ(all.value, arma::accu(arma::square(error)) / 4);
  const mat expected = error / 2;
  EXPECT_TRUE(arma::approx_equal(mat(all.stages.at(Stage::output)->row(2)), expected, "absdiff", 1e-15));
  EXPECT_TRUE(arma::approx_equal(all.of({MatrixName::output_bias}), expected, "absdiff", 1e-15));
  EXPECT_THAT(support::error_of([&] {
                gradients(attention(m), m, 0, {Stage::output, 0, 2, std::nullopt, {1}});
              }),
              "output[2,:]: expected 4 target numbers, got 1");
}

TEST(Gradients, StopAtOverriddenCellsAndGivenStages) {
  support::Random random(4);
  Model m = support::model(random, 4, 3, 4, 2);
  m.given.cells.push_back({{Stage::weights, 0, 1, 2, 1}, 0.5});
  const Gradients all = gradients(attention(m), m, 0, {Stage::dropped_weights, 1, 2, 1});
  EXPECT_EQ(all.stages.at(Stage::weights, 1)(2, 1), 1);
  EXPECT_TRUE(all.stages.at(Stage::masked_scores, 1)->is_zero());
  EXPECT_TRUE(all.of({MatrixName::query_weight}).is_zero());
  m.given.cells.clear();
  set_given_stage(m, support::given_stage(random, m, Stage::weights));
  const Gradients given = gradients(attention(m), m, 0, {Stage::output, 0, 2, 1});
  EXPECT_FALSE(given.stages.at(Stage::weights, 1)->is_zero());
  EXPECT_TRUE(given.of({MatrixName::query_weight}).empty());
}

TEST(Gradients, AreNotANumberWhereZeroMeetsNotANumberThoughTheOutputIsFinite) {
  support::Random random(5);
  Model m = support::model(random, 3, 3, 4, 1);
  m.mask.empty_rows = attention::EmptyRows::zeros;
  mat bias(3, 3, arma::fill::zeros);
  bias.row(1).fill(-infinity);
  m.additions.score_bias.emplace_back(bias);
  EXPECT_TRUE(attend(m).at(Stage::output)->is_finite());
  const Gradients all = gradients(attention(m), m, 0, {});
  const mat& masked = all.stages.at(Stage::masked_scores);
  EXPECT_TRUE(masked.row(0).is_finite() && masked.row(2).is_finite());
  EXPECT_TRUE(std::isnan(masked(1, 0)));
  EXPECT_TRUE(all.of({MatrixName::query_weight}).has_nan());
  EXPECT_TRUE(all.of({MatrixName::value_weight}).is_finite());
}

TEST(Gradients, SumOverTheHeadsThatShareKeysAndValues) {
  support::Random random(6);
  Model m = support::model(random, 4, 3, 4, 2);
  m.n_kv_heads = 1;
  for (auto* linear : {&m.projections->key, &m.projections->value}) *linear = support::linear(random, 3, 2);
  const Gradients all = gradients(attention(m), m, 0, {Stage::concatenated});
  const Trace trace = attend(m);
  const arma::rowvec of_a_row =
      arma::sum(*trace.at(Stage::weights, 0), 0) + arma::sum(*trace.at(Stage::weights, 1), 0);
  for (std::size_t h = 0; h < 2; ++h)
    EXPECT_TRUE(arma::approx_equal(arma::mat(all.stages.at(Stage::values, h)->col(1)),
                                   arma::mat(of_a_row.t()), "absdiff", 1e-14));
}

TEST(GradientTerms, OfItsReadersSumToTheGradientOfACell) {
  support::Random random(12);
  std::size_t n_cells = 0;
  for (int k = 0; k < 60 && !testing::Test::HasFailure(); ++k) {
    SCOPED_TRACE("model " + std::to_string(k));
    const Model m = any_smooth_model(random);
    if (m.additions.normalize && m.additions.normalize->over == attention::NormScope::all_heads) continue;
    const Graph g = attention(m);
    const Trace trace = attend(m);
    const Gradients all = gradients(g, m, 0, {.row = 0});
    if (!std::isfinite(all.value)) continue;
    std::vector<CellAddress> cells;
    explain::for_each_cell(m, trace, [&](const CellAddress& cell) { cells.push_back(cell); });
    for (int n = 0; n < 20; ++n) {
      const CellAddress cell = cells[support::below(random, cells.size())];
      const double gradient = all.stages.at(cell.stage, cell.head)(cell.row, cell.column);
      double sum = cell.stage == Stage::output && cell.row == 0 ? 1 : 0;
      for (const GradientTerm& term : gradient_readers({g, m, trace}, all, cell))
        sum += term.gradient * term.derivative;
      if (std::isnan(gradient) || std::isnan(sum)) continue;
      ++n_cells;
      EXPECT_NEAR(sum, gradient, 1e-9 * std::max(1.0, std::abs(gradient)))
          << attention::info(cell.stage).name << " " << cell.head << " " << cell.row << " " << cell.column;
    }
  }
  EXPECT_GT(n_cells, 500u);
}

TEST(GradientTerms, OfItsInputsAreWhatACellPassesOn) {
  support::Random random(13);
  const Model m = support::model(random, 4, 3, 4, 2);
  const Graph g = attention(m);
  const Trace trace = attend(m);
  const Gradients all = gradients(g, m, 0, {Stage::output, 0, 3, 1});
  const CellAddress cell{Stage::contexts, 1, 3, 0};
  const auto terms = gradient_inputs({g, m, trace}, all, cell);
  ASSERT_EQ(terms.size(), 8u);  // the weights of a row, and the values of a column
  for (const GradientTerm& term : terms) {
    const bool is_weight = term.cell.source == explain::Source(Stage::dropped_weights);
    const std::size_t key = is_weight ? term.cell.column : term.cell.row;
    EXPECT_EQ(term.derivative,
              is_weight ? trace.at(Stage::values, 1)(key, 0) : trace.at(Stage::weights, 1)(3, key));
  }
}

TEST(Target, IsReadAsItIsWritten) {
  for (const std::string text : {"weights[3,1]", "weights[3,:]", "output[:,0]", "queries[:,:]"}) {
    const auto target = parse_target(text);
    ASSERT_TRUE(target) << text;
    EXPECT_EQ(text_of(*target), text);
  }
  EXPECT_EQ(text_of(*parse_target("output")), "output[:,:]");
  EXPECT_EQ(text_of(*parse_target("output[1, 2]")), "output[1,2]");
  for (const std::string text :
       {"weight[1,2]", "weights[1]", "weights[1,2", "weights[-1,2]", "weights[,]", "weights[1,2]]", ""})
    EXPECT_FALSE(parse_target(text)) << text;
}

TEST(Target, ThatTheModelLacksIsRefusedWithTheRange) {
  support::Random random(7);
  const Model m = support::model(random, 4, 3, 4, 2);
  const auto error = [&](const char* text, std::size_t head) {
    Target target = *parse_target(text);
    target.head = head;
    return support::error_of([&] { gradients(attention(m), m, 0, target); });
  };
  EXPECT_EQ(error("weights[4,0]", 0), "weights[4,0]: expected a row below 4 and a column below 4");
  EXPECT_EQ(error("queries[:,2]", 0), "queries[:,2]: expected a row below 4 and a column below 2");
  EXPECT_EQ(error("weights[0,0]", 2), "weights: expected a head below 2, got 2");
  EXPECT_THAT(error("capped_scores[0,0]", 0),
              testing::StartsWith(
                  "stage \"capped_scores\": this model does not have it; it has embeddings, queries, "));
}

}  // namespace
}  // namespace core::graph
