#include "core/graph/words.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/graph/attend.hpp"
#include "core/graph/graph.hpp"
#include "tests/core/graph/any_model.hpp"

namespace core::explain {
namespace {

using attention::attend;

/// Returns a model of two tokens with one number each, for mental arithmetic.
Model small() {
  Model m;
  m.sequences.push_back({{"a", "b"}, arma::mat("2; 3")});
  m.mask.causal = false;
  return m;
}

TEST(PlainText, TellsTheWholeDerivationOfAScore) {
  const Model model = small();
  const Explanation score =
      explain({graph::attention(model), model, attend(model)}, {Stage::scores, 0, 1, 0});
  EXPECT_EQ(plain_text(score, {{"a", "b"}, {}}),
            "scores, head 0, row 1 (b), column 0 (a) = 6\n\n"
            "1  Score  q1 . k0\n"
            "   3 * 2 = 6\n"
            "   sum = 6\n");
}

TEST(PlainText, IsAsciiForEveryCellOfEveryKind) {
  support::Random random(14);
  for (int k = 0; k < 100; ++k) {
    const Model model = any_model(random);
    const Trace trace = attend(model);
    for_each_cell(model, trace, [&](const CellAddress& cell) {
      const std::string text =
          plain_text(explain({graph::attention(model), model, trace}, cell), model.sequences[0]);
      ASSERT_TRUE(std::all_of(text.begin(), text.end(), [](char c) {
        return static_cast<unsigned char>(c) < 128;
      })) << text;
    });
  }
}

TEST(Name, IsInTheFieldsNotation) {
  EXPECT_EQ(name(SourceCell{Stage::queries, 0, 1, 0}), "q_1[0]");
  EXPECT_EQ(name(SourceCell{MatrixName::query_weight, 0, 2, 1}), "W_q[2][1]");
  EXPECT_EQ(name(SourceCell{MatrixName::output_bias, 0, 0, 3}), "b_o[3]");
  EXPECT_EQ(name(SourceCell{Stage::weights, 0, 1, 0}), "Weights[1][0]");
}

}  // namespace
}  // namespace core::explain
