#include <gmock/gmock.h>

#include <algorithm>

#include "core/graph/attend.hpp"
#include "core/graph/explain.hpp"
#include "core/graph/graph.hpp"
#include "tests/core/graph/any_model.hpp"

namespace core::explain {
namespace {

using attention::attend;
using testing::ElementsAre;

/// Returns whether the rectangles contain the cell; heads of a KV group share keys and values.
bool contains(const Model& model, const std::vector<SourceRect>& all, const CellAddress& cell) {
  const auto matrix = [&](std::size_t head) { return matrix_of_head(model, cell.stage, head); };
  return std::any_of(all.begin(), all.end(), [&](const SourceRect& cells) {
    return cells.source == Source(cell.stage) && matrix(cells.head) == matrix(cell.head) &&
           cells.row0 <= cell.row && cell.row < cells.row1 && cells.column0 <= cell.column &&
           cell.column < cells.column1;
  });
}

CellAddress address(const SourceCell& place) {
  return {std::get<Stage>(place.source), place.head, place.row, place.column};
}

/// Calls visit with every stage cell of the rectangles.
template <class Visit>
void for_each_stage_cell(const std::vector<SourceRect>& all, Visit visit) {
  for (const SourceRect& cells : all)
    if (std::holds_alternative<Stage>(cells.source))
      for (std::size_t k = 0; k < cells.count(); ++k) visit(address(cells.at(k)));
}

TEST(Links, WhatACellIsMadeOfLeadsToIt) {
  support::Random random(11);
  for (int k = 0; k < 150; ++k) {
    const Model model = any_model(random);
    const Trace trace = attend(model);
    for_each_cell(model, trace, [&](const CellAddress& cell) {
      for_each_stage_cell(
          operands({graph::attention(model), model, trace}, cell), [&](const CellAddress& part) {
            ASSERT_TRUE(contains(model, results({graph::attention(model), model, trace}, part), cell))
                << attention::info(part.stage).name << " to " << attention::info(cell.stage).name;
          });
    });
  }
}

TEST(Links, WhatACellLeadsToIsMadeOfIt) {
  support::Random random(12);
  for (int k = 0; k < 150; ++k) {
    const Model model = any_model(random);
    const Trace trace = attend(model);
    for_each_cell(model, trace, [&](const CellAddress& cell) {
      const double value = trace.at(cell.stage, cell.head)(cell.row, cell.column);
      if (value == -arma::datum::inf) return;  // adds nothing to a softmax
      for_each_stage_cell(
          results({graph::attention(model), model, trace}, cell), [&](const CellAddress& made) {
            ASSERT_TRUE(contains(model, operands({graph::attention(model), model, trace}, made), cell))
                << attention::info(cell.stage).name << " to " << attention::info(made.stage).name;
          });
    });
  }
}

/// Five tokens, two heads, d_head = 2, causal.
struct Wired : testing::Test {
  support::Random random{13};
  Model model = support::model(random, 5, 3, 4, 2);
  Trace trace = attend(model);
};

TEST_F(Wired, ScoreIsMadeOfTheRowOfItsQueryAndTheRowOfItsKey) {
  EXPECT_THAT(operands({graph::attention(model), model, trace}, {Stage::scores, 1, 3, 2}),
              ElementsAre(SourceRect{Stage::queries, 1, 3, 4, 0, 2}, SourceRect{Stage::keys, 1, 2, 3, 0, 2}));
}

TEST_F(Wired, WeightIsMadeOfTheVisibleScoresOfItsRow) {
  EXPECT_THAT(operands({graph::attention(model), model, trace}, {Stage::weights, 0, 2, 0}),
              ElementsAre(SourceRect{Stage::masked_scores, 0, 2, 3, 0, 3}));
}

TEST_F(Wired, HiddenScoreMakesItsOwnWeightAloneAndOthersMakeThoseOfSeenKeys) {
  EXPECT_THAT(results({graph::attention(model), model, trace}, {Stage::masked_scores, 1, 1, 3}),
              ElementsAre(SourceRect{Stage::weights, 1, 1, 2, 3, 4}));
  EXPECT_THAT(operands({graph::attention(model), model, trace}, {Stage::weights, 1, 1, 3}),
              ElementsAre(SourceRect{Stage::masked_scores, 1, 1, 2, 3, 4}));
  EXPECT_THAT(results({graph::attention(model), model, trace}, {Stage::masked_scores, 1, 2, 0}),
              ElementsAre(SourceRect{Stage::weights, 1, 2, 3, 0, 3}));
}

TEST_F(Wired, KeyOfTheSecondHeadIsMadeOfItsOwnBandOfTheProjection) {
  EXPECT_THAT(operands({graph::attention(model), model, trace}, {Stage::keys, 1, 0, 1}),
              ElementsAre(SourceRect{Stage::embeddings, 0, 0, 1, 0, 3},
                          SourceRect{MatrixName::key_weight, 0, 0, 3, 3, 4},
                          SourceRect{MatrixName::key_bias, 0, 0, 1, 3, 4}));
}

TEST_F(Wired, KeyLeadsToAColumnOfScores) {
  EXPECT_THAT(results({graph::attention(model), model, trace}, {Stage::keys, 1, 3, 0}),
              ElementsAre(SourceRect{Stage::scores, 1, 0, 5, 3, 4}));
}

TEST_F(Wired, ContextLeadsToItsPlaceAmongTheHeads) {
  EXPECT_THAT(results({graph::attention(model), model, trace}, {Stage::contexts, 1, 2, 0}),
              ElementsAre(SourceRect{Stage::concatenated, 0, 2, 3, 2, 3}));
  model.merge = attention::CombineRule::reshape_without_transpose;
  trace = attend(model);
  // Flat index (1·5 + 2)·2, read back in rows of four.
  EXPECT_THAT(results({graph::attention(model), model, trace}, {Stage::contexts, 1, 2, 0}),
              ElementsAre(SourceRect{Stage::concatenated, 0, 3, 4, 2, 3}));
}

TEST_F(Wired, OutputLeadsNowhere) {
  EXPECT_TRUE(results({graph::attention(model), model, trace}, {Stage::output, 0, 2, 3}).empty());
}

}  // namespace
}  // namespace core::explain
