#include "core/graph/explain.hpp"

#include <gmock/gmock.h>

#include <cmath>

#include "core/graph/attend.hpp"
#include "core/graph/graph.hpp"
#include "core/graph/stages.hpp"
#include "tests/core/graph/any_model.hpp"
#include "tests/golden/fixture_model.hpp"

namespace core::explain {
namespace {

using attention::attend;

double cell_of(const Trace& trace, const CellAddress& cell) {
  return trace.at(cell.stage, cell.head)(cell.row, cell.column);
}

/// Returns the magnitude of the terms added in the cell's own steps, to which rounding is relative.
double magnitude(const Explanation& explanation) {
  double sum = 0;
  for (const Step& step : explanation.steps) {
    if (step.cell != explanation.cell) continue;
    for (const StepLine& line : step.lines)
      if (line.role == StepLine::term || line.form == LineForm::addition) sum += std::abs(line.value);
  }
  return sum;
}

bool equals(double found, double expected, double added_up) {
  if (std::isnan(expected)) return std::isnan(found);
  if (std::isinf(expected)) return found == expected;
  return std::abs(found - expected) <= 1e-12 * std::abs(expected) + 1e-15 * added_up;
}

std::size_t expect_every_cell_explained(const Model& model) {
  std::size_t n_cells = 0, n_wrong = 0;
  for (std::size_t s = 0; s < model.sequences.size(); ++s) {
    const Trace trace = attend(model, s);
    for_each_cell(model, trace, [&](const CellAddress& cell) {
      const Explanation e = explain({graph::attention(model), model, trace}, cell);
      ++n_cells;
      if (equals(e.result, cell_of(trace, cell), magnitude(e))) return;
      if (++n_wrong < 5)
        ADD_FAILURE() << attention::info(cell.stage).name << " head " << cell.head << " row " << cell.row
                      << " column " << cell.column << ": " << e.result << " is not " << cell_of(trace, cell);
    });
  }
  EXPECT_EQ(n_wrong, 0u);
  return n_cells;
}

TEST(Explanation, EqualsEveryCellOfEveryFixture) {
  std::size_t n_fixtures = 0, n_cells = 0;
  for (const auto& [id, schema] : support::fixture_schemas()) {
    if (schema != "attention-fixture-1") continue;
    SCOPED_TRACE(id);
    n_cells += expect_every_cell_explained(golden::model_of(support::read_fixture(id)));
    ++n_fixtures;
  }
  EXPECT_GE(n_fixtures, 20u);
  EXPECT_GT(n_cells, 10000u);
}

TEST(Explanation, EqualsEveryCellOfModelsWithEveryOption) {
  support::Random random(5);
  for (int k = 0; k < 400 && !testing::Test::HasFailure(); ++k) {
    SCOPED_TRACE("model " + std::to_string(k));
    expect_every_cell_explained(any_model(random));
  }
}

TEST(Explanation, ResultFollowsTheOperandsAndNotTheCell) {
  support::Random random(7);
  const Model model = support::model(random, 4, 3, 4, 2);
  Trace trace = attend(model);
  const CellAddress cell{Stage::scores, 1, 2, 0};
  const double before = explain({graph::attention(model), model, trace}, cell).result;
  trace.at(attention::Stage::scores, 1) = arma::mat(4, 4, arma::fill::value(99));
  EXPECT_EQ(explain({graph::attention(model), model, trace}, cell).result, before);
  arma::mat queries = trace.at(attention::Stage::queries, 1);
  queries(2, 1) += 1;
  trace.at(attention::Stage::queries, 1) = queries;
  EXPECT_NEAR(explain({graph::attention(model), model, trace}, cell).result - before,
              trace.at(attention::Stage::keys, 1)(0, 1), 1e-12);
}

/// The weight of query 'journey' on key 'Your', with the notebook's two columns.
struct Journey : testing::Test {
  support::Fixture fixture = support::read_fixture("s004_causal_neg_inf");
  Model model = golden::model_of(fixture);
  Trace trace = attend(model);
  Explanation weight = explain({graph::attention(model), model, trace}, {Stage::weights, 0, 1, 0});
};

TEST_F(Journey, IsWorkedOutFromQueriesAndKeysToTheWeight) {
  std::vector<std::string> titles;
  for (const Step& step : weight.steps) titles.push_back(step.title);
  EXPECT_THAT(titles, testing::ElementsAre("Score", "Scaled", "Masked", "Softmax"));
  const auto reference = [&](const char* name) { return fixture.tensors.at(name).matrix({0, 0})(1, 0); };
  EXPECT_NEAR(weight.steps[0].result, reference("scores"), 1e-12);
  EXPECT_NEAR(weight.steps[1].result, reference("scaled"), 1e-12);
  EXPECT_NEAR(weight.steps[2].result, reference("masked"), 1e-12);
  EXPECT_NEAR(weight.result, reference("weights"), 1e-12);
}

TEST_F(Journey, ScoreNamesItsOperandsAndWhereTheyStand) {
  const Step& score = weight.steps[0];
  EXPECT_EQ(score.formula, "q_1 · k_0");
  ASSERT_EQ(score.lines.size(), 3u);
  EXPECT_NEAR(score.lines[0].a.value, fixture.tensors.at("Q").matrix({0})(1, 0), 1e-12);
  EXPECT_NEAR(score.lines[1].b.value, fixture.tensors.at("K").matrix({0})(0, 1), 1e-12);
  EXPECT_EQ(score.lines[0].a.place, (SourceCell{Stage::queries, 0, 1, 0}));
  EXPECT_EQ(score.lines[1].b.place, (SourceCell{Stage::keys, 0, 0, 1}));
  EXPECT_EQ(score.lines[2].role, StepLine::total);
}

TEST_F(Journey, QueryIsMadeOfTheEmbeddingAndAColumnOfItsProjection) {
  const Explanation query = explain({graph::attention(model), model, trace}, {Stage::queries, 0, 1, 1});
  EXPECT_EQ(query.steps[0].formula, "x_1 · W_q, column 1");
  ASSERT_EQ(query.steps[0].lines.size(), model.d_model() + 1);
  EXPECT_EQ(query.steps[0].lines[2].a.place, (SourceCell{Stage::embeddings, 0, 1, 2}));
  EXPECT_EQ(query.steps[0].lines[2].b.place, (SourceCell{MatrixName::query_weight, 0, 2, 1}));
}

TEST(Explanation, UnfoldsAnOutputAlongItsLargestTerm) {
  support::Random random(8);
  const Model model = support::model(random, 3, 3, 4, 2);
  const Trace trace = attend(model);
  const Explanation output = explain({graph::attention(model), model, trace}, {Stage::output, 0, 2, 1});
  std::vector<std::string> titles;
  for (const Step& step : output.steps) titles.push_back(step.title);
  EXPECT_THAT(titles, testing::ElementsAre("Context vector", "Concatenated", "Projected", "Bias"));
  const arma::rowvec terms =
      trace.at(attention::Stage::concatenated).row(2) % model.projections->output->weight->col(1).t();
  const CellAddress merged{Stage::concatenated, 0, 2, arma::abs(terms).index_max()};
  EXPECT_EQ(output.steps[1].cell, merged);
}

TEST(Explanation, LeavesHiddenKeysOutOfTheSoftmax) {
  support::Random random(9);
  const Model model = support::model(random, 5, 3, 4, 2);
  const Explanation weight =
      explain({graph::attention(model), model, attend(model)}, {Stage::weights, 0, 1, 0});
  EXPECT_EQ(weight.steps.back().lines.size(), 2u + 2);  // two visible keys, their sum, the quotient
}

TEST(Fold, KeepsTheLargestTermsAndAddsUpTheRest) {
  Step step;
  for (const double value : {1.0, -9.0, 2.0, 8.0, -3.0, 0.5}) {
    StepLine line;
    line.role = StepLine::term;
    line.value = value;
    step.lines.push_back(line);
  }
  step.lines.emplace_back().role = StepLine::total;
  const Folded folded = fold(step, 2);
  EXPECT_THAT(folded.lines, testing::ElementsAre(1, 3, 6));
  EXPECT_EQ(folded.others, 4u);
  EXPECT_EQ(folded.rest, 0.5);
}

TEST(Fold, LeavesOutNothingThatWouldSaveNoLine) {
  Step step;
  step.lines.resize(3);
  for (StepLine& line : step.lines) line.role = StepLine::term;
  EXPECT_EQ(fold(step, 2).others, 0u);
  EXPECT_EQ(fold(step, 1).others, 2u);
}

}  // namespace
}  // namespace core::explain
