#include "core/graph/graph.hpp"

#include <gtest/gtest.h>

#include "core/graph/attend.hpp"
#include "core/graph/operations.hpp"
#include "core/graph/stages.hpp"
#include "tests/core/graph/any_model.hpp"
#include "tests/support/random_model.hpp"

namespace core::graph {
namespace {

/// Takes the root of each number without its sign: an operation that attention does not have.
struct Root : Operation {
  explicit Root(Stage x) : Operation({{x}}) {}
  mat matrix(const Reading& in) const override { return arma::sqrt(arma::abs(in[0])); }
  std::string formula(bool, const std::string&) const override { return "√|x|"; }
  Code torch(const Names& in) const override { return {in[0] + ".abs().sqrt()"}; }
};

TEST(Graph, TakesANewStageAsAnOperationAndALine) {
  support::Random random{3};
  const Model model = support::model(random, 4, 3, 4, 2);
  Graph g = attention(model);
  const mat before = *evaluate(g, model, 0)[Stage::contexts][1];
  g.wrap(Stage::contexts, Root(Stage::contexts));
  const Evaluation stages = evaluate(g, model, 0);
  EXPECT_TRUE(
      arma::approx_equal(*stages[Stage::contexts][1], mat(arma::sqrt(arma::abs(before))), "absdiff", 0));
  EXPECT_EQ(formula(g, model, Stage::contexts, true), "√|x|");
  const mat joined = arma::join_rows(*stages[Stage::contexts][0], *stages[Stage::contexts][1]);
  EXPECT_TRUE(arma::approx_equal(*stages[Stage::concatenated][0], joined, "absdiff", 0));
}

TEST(Graph, GivesAFewRowsAsInTheWhole) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    support::Random random(seed);
    const Model model = explain::any_model(random);
    if (attention::check(model)) continue;
    const Graph g = attention(model);
    const std::vector<std::size_t> rows{support::below(random, std::min(model.n_tokens(), model.n_keys()))};
    const Evaluation all = evaluate(g, model, 0), few = evaluate(g, model, 0, rows);
    for (const Node& node : g.nodes)
      for (std::size_t k = 0; k < all[node.stage].size(); ++k) {
        const mat& whole = *all[node.stage][k];
        const mat wanted = few.partial[index(node.stage)] ? mat(whole.row(rows[0])) : whole;
        const mat& found = *few[node.stage][k];
        ASSERT_EQ(arma::size(found), arma::size(wanted));
        for (std::size_t n = 0; n < found.n_elem; ++n)
          if (std::isfinite(wanted[n]) && g.precision == Precision::float64) {
            const double limit = 1e-10 * std::max(1.0, std::abs(wanted[n]));
            EXPECT_NEAR(found[n], wanted[n], limit) << "seed " << seed << ", stage " << index(node.stage);
          }
      }
  }
}

TEST(Graph, KnowsWhereACombinedCellComesFromAndBack) {
  support::Random random{31};
  Model model = support::model(random, 3, 3, 4, 2);
  using attention::HeadColumns, attention::MergeRule;
  for (const auto& [merge, columns] : {std::pair{MergeRule::concatenate, HeadColumns::bands},
                                       {MergeRule::concatenate, HeadColumns::interleaved},
                                       {MergeRule::reshape_without_transpose, HeadColumns::bands}}) {
    model.merge = merge;
    model.departures.merge = columns;
    const Trace trace = attention::attend(model);
    const Layout& layout = combine_layout(model);
    for (std::size_t row = 0; row < 3; ++row)
      for (std::size_t column = 0; column < 4; ++column) {
        const HeadCell from = layout.split({row, column}, combined_sizes(model));
        EXPECT_EQ(trace.concatenated(row, column), trace.heads[from.head].contexts(from.row, from.column));
        const JoinedCell back = layout.joined(from, combined_sizes(model));
        EXPECT_TRUE(back.row == row && back.column == column);
      }
  }
}

}  // namespace
}  // namespace core::graph
