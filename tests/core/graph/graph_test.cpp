#include "core/graph/graph.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/graph/attend.hpp"
#include "core/graph/lazy_stages.hpp"
#include "core/graph/operations.hpp"
#include "core/graph/stages.hpp"
#include "core/graph/validation.hpp"
#include "tests/core/graph/any_model.hpp"
#include "tests/support/random_model.hpp"

namespace core::graph {
namespace {

/// The square root of each magnitude, an operation that attention does not have.
struct Root : Operation {
  explicit Root(Stage x) { inputs.push_back({x}); }
  mat matrix(const OperationInputs& in) const override { return arma::sqrt(arma::abs(in[0])); }
  void terms(const Cell& cell, Derivation& steps) const override {
    const Operand x = cell.operand(0);
    steps.begin("Root", "√|x|");
    steps.line(LineForm::single, x, {}, std::sqrt(std::abs(x.value)));
  }
  std::string formula(bool, const std::string&) const override { return "√|x|"; }
  TorchCode torch_code(const InputNames& in) const override { return {in[0] + ".abs().sqrt()"}; }
};

/// Returns the model's graph with an extra stage: roots of the scaled scores, which are then masked.
Graph with_roots(const Model& model) {
  Graph g = attention(model);
  g.add(Stage::capped_scores, Root(Stage::scaled_scores));
  Graph sorted;
  sorted.kv_head = g.kv_head;
  for (Node& node : g.nodes) {
    if (node.stage == Stage::masked_scores) {
      node.operation.edit().inputs[0].source = Stage::capped_scores;
      sorted.nodes.push_back(std::move(g.nodes.back()));
    }
    if (node.operation) sorted.nodes.push_back(std::move(node));
  }
  return sorted;
}

TEST(Graph, TakesANewStageAsAnOperationAndALine) {
  support::Random random{3};
  const Model model = support::model(random, 4, 3, 4, 2);
  const Graph g = with_roots(model);
  LazyStages stages(g, model);
  const mat &before = stages.matrix(Stage::scaled_scores, 0, 1), roots = arma::sqrt(arma::abs(before)),
            &masked = stages.matrix(Stage::masked_scores, 0, 1);
  EXPECT_TRUE(arma::approx_equal(*stages.matrix(Stage::capped_scores, 0, 1), roots, "absdiff", 0));
  EXPECT_EQ(masked(3, 1), roots(3, 1));
  EXPECT_EQ(formula(g, model, Stage::capped_scores, true), "√|x|");

  const std::vector<std::string> lines = forward_lines(g, model);
  EXPECT_TRUE(std::ranges::count(lines, "capped_scores = scaled_scores.abs().sqrt()"));
  EXPECT_TRUE(std::ranges::count(lines, "masked_scores = capped_scores.masked_fill(mask == 0, -torch.inf)"));

  Trace trace = attention::attend(model);
  trace.at(attention::Stage::capped_scores, 1) = roots;
  const Cell cell{g, *g.find(Stage::capped_scores), model, trace, 1, 3, 1};
  EXPECT_EQ(cell.cells(0), (SourceRect{Stage::scaled_scores, 1, 3, 4, 1, 2}));
  Derivation steps{{Stage::capped_scores, 1, 3, 1}};
  cell.derive(steps);
  EXPECT_NEAR(steps.result(), roots(3, 1), 1e-12);
}

TEST(Graph, WorksACellOutThroughAHiddenStage) {
  support::Random random{3};
  const Model model = support::model(random, 4, 3, 4, 2);
  Graph g = attention(model);
  g.wrap(Stage::contexts, Root(Stage::contexts));
  const Trace trace = attention::attend(model);
  const Cell cell{g, *g.find(Stage::contexts), model, trace, 1, 3, 1};
  const Operand before = cell.operand(0);
  EXPECT_NEAR(before.value, trace.at(attention::Stage::contexts, 1)(3, 1), 1e-12);
  EXPECT_FALSE(before.place);
  EXPECT_EQ(std::ranges::count(forward_lines(g, model), "contexts = (dropped_weights @ values).abs().sqrt()"),
            1);
}

TEST(Graph, GivesAFewRowsAsInTheWhole) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    support::Random random(seed);
    const Model model = explain::any_model(random);
    if (attention::check(model)) continue;
    const Graph g = attention(model);
    const std::vector<std::size_t> rows{support::below(random, std::min(model.n_tokens(), model.n_keys()))};
    LazyStages all(g, model), few(g, model, rows);
    const NodeSet existing = existing_nodes(g, model);
    for (const Node& node : g.nodes)
      for (std::size_t k = 0; existing[index(node.stage)] && k < n_matrices(node, model); ++k) {
        if (node.stage == kept_weights) continue;  // one matrix of all heads, which is read whole
        const mat wanted = all.matrix(node.stage, 0, k)->row(rows[0]);
        const mat& found = few.matrix(node.stage, 0, k, true);
        ASSERT_EQ(arma::size(found), arma::size(wanted));
        for (std::size_t n = 0; n < found.n_elem; ++n)
          if (std::isfinite(wanted[n]) && g.precision == Precision::float64) {
            const double limit = 1e-10 * std::max(1.0, std::abs(wanted[n]));
            EXPECT_NEAR(found[n], wanted[n], limit) << "seed " << seed << ", stage " << index(node.stage);
          }
      }
  }
}

TEST(Graph, SharesWhatACopyDoesNotEdit) {
  support::Random random{3};
  const Model model = support::model(random, 4, 3, 4, 2);
  const Graph right = attention(model);
  Graph edited = right;
  edited.get<ScaleScores>(Stage::scaled_scores)->factor = 2;
  EXPECT_NE(right.get<ScaleScores>(Stage::scaled_scores)->factor, 2);
  EXPECT_EQ(right.get<Softmax>(Stage::weights), std::as_const(edited).get<Softmax>(Stage::weights));

  LazyStages before(right, model), after(edited, model, before);
  EXPECT_TRUE(after.is_unchanged(Stage::scores));
  EXPECT_FALSE(after.is_unchanged(Stage::scaled_scores));
  EXPECT_FALSE(after.is_unchanged(Stage::output));
  EXPECT_EQ(&*after.matrix(Stage::scores, 0, 1), &*before.matrix(Stage::scores, 0, 1));
  EXPECT_TRUE(arma::approx_equal(*after.matrix(Stage::scaled_scores, 0, 1),
                                 2 * *before.matrix(Stage::scores, 0, 1), "absdiff", 0));

  Graph wrapped = right;
  wrapped.wrap(Stage::contexts, Root(Stage::contexts));
  LazyStages roots(wrapped, model, before);
  EXPECT_TRUE(roots.is_unchanged(Stage::weights));
  EXPECT_TRUE(arma::approx_equal(*roots.matrix(Stage::contexts, 0, 1),
                                 arma::sqrt(arma::abs(*before.matrix(Stage::contexts, 0, 1))), "absdiff", 0));
}

TEST(Graph, ReadsOtherHeadsAndNumbersWhereAnEditSaysSo) {
  support::Random random{5};
  const Model model = support::model(random, 4, 3, 4, 2);
  Graph g = attention(model);
  auto* products = g.get<DotProducts>(Stage::scores);
  products->inputs[1].heads =
      std::make_shared<const std::vector<std::size_t>>(std::vector<std::size_t>{1, 0});
  const mat weight(3, 4, arma::fill::eye);
  g.get<Project>(all_values)->inputs[1].numbers = weight;
  LazyStages stages(g, model);
  EXPECT_TRUE(arma::approx_equal(*stages.matrix(Stage::scores, 0, 0),
                                 *stages.matrix(Stage::queries, 0, 0) * stages.matrix(Stage::keys, 0, 1)->t(),
                                 "absdiff", 1e-14));
  const mat& x = model.sequences[0].embeddings;
  EXPECT_TRUE(arma::approx_equal(*stages.matrix(all_values, 0, 0), x * weight, "absdiff", 1e-14));
}

TEST(Graph, KnowsWhereACombinedCellComesFromAndBack) {
  support::Random random{31};
  Model model = support::model(random, 3, 3, 4, 2);
  const Model right = model;
  for (const char* mistake : {"", "heads_interleaved:combined", "merge_without_transpose"}) {
    if (*mistake) model = injected(*bugs::find_bug(mistake), right);
    const Trace trace = attention::attend(model);
    Graph g = attention(model);
    const HeadLayout& layout = *g.get<CombineHeads>(Stage::concatenated)->inputs[0].layout;
    for (std::size_t row = 0; row < 3; ++row)
      for (std::size_t column = 0; column < 4; ++column) {
        const HeadCell from = layout.split({row, column}, combined_sizes(model));
        EXPECT_EQ(trace.at(attention::Stage::concatenated)(row, column),
                  trace.at(attention::Stage::contexts, from.head)(from.row, from.column));
        const CombinedCell back = layout.combine(from, combined_sizes(model));
        EXPECT_TRUE(back.row == row && back.column == column);
      }
  }
}

}  // namespace
}  // namespace core::graph
