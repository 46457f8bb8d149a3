#include "core/graph/model.hpp"
#include "core/graph/validation.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/random_model.hpp"

namespace core::attention {
namespace {

/// Returns a model of two tokens and two heads, d_in = 3, d_head = 2, with every part that can be invalid.
Model valid(std::size_t n_sequences = 1) {
  support::Random random(9);
  Model m = support::model(random, 2, 3, 4, 2, n_sequences);
  for (std::size_t k = 0; k < 2 * n_sequences; ++k)
    m.dropout.given.emplace_back(support::zeros_and_ones(random, 2, 2));
  m.mask.cells = {{0, 1, true}, {1, 0, false}};
  m.context_length = 2;
  return m;
}

/// Returns the problem that check() finds after a change to a valid model, as "path: message".
template <typename Change>
std::string problem(Change change, std::size_t n_sequences = 1) {
  Model m = valid(n_sequences);
  change(m);
  const auto found = check(m);
  return found ? found->path + ": " + found->message : "";
}

TEST(Check, FindsNothingInAValidModel) {
  EXPECT_EQ(problem([](Model&) {}), "");
  EXPECT_EQ(problem([](Model&) {}, 3), "");
  EXPECT_EQ(problem([](Model& m) { m.projections->output.reset(); }), "");
}

TEST(Check, NamesEmbeddingsThatAreMissingOrDoNotFit) {
  EXPECT_EQ(problem([](Model& m) { m.sequences.clear(); }), "embeddings: expected at least one sequence");
  EXPECT_EQ(problem([](Model& m) { m.sequences[0].embeddings = arma::mat(0, 3); }),
            "embeddings: expected at least one token with at least one number");
  EXPECT_EQ(problem([](Model& m) { m.sequences[1].embeddings = arma::mat(2, 4); }, 2),
            "embeddings[1]: expected 2×3 (as the first sequence), got 2×4");
  EXPECT_EQ(problem([](Model& m) { m.sequences[0].embeddings.edit()(1, 2) = NAN; }),
            "embeddings[1][2]: expected a finite number");
  EXPECT_EQ(problem([](Model& m) { m.sequences[1].embeddings.edit()(0, 1) = INFINITY; }, 2),
            "embeddings[1][0][1]: expected a finite number");
}

TEST(Check, NamesTokensThatDoNotFit) {
  EXPECT_EQ(problem([](Model& m) { m.sequences[0].tokens.pop_back(); }),
            "tokens: expected 2 tokens, one for each row of the embeddings, got 1");
  EXPECT_EQ(problem([](Model& m) { m.sequences[1].tokens.push_back("x"); }, 2),
            "tokens[1]: expected 2 tokens, one for each row of the embeddings, got 3");
  EXPECT_EQ(problem([](Model& m) { m.context_length = 1; }),
            "context_length: expected at most 1 tokens (context_length), got 2");
}

TEST(Check, NamesProjectionsThatDoNotFit) {
  const std::string meaning = "(d_in × d_out, as the embeddings and the query projection have it)";
  EXPECT_EQ(problem([](Model& m) { m.projections->query.weight = arma::mat(2, 4); }),
            "projections.query.weight: expected 3×4 " + meaning + ", got 2×4");
  EXPECT_EQ(problem([](Model& m) { m.projections->key.weight = arma::mat(3, 2); }),
            "projections.key.weight: expected 3×4 " + meaning + ", got 3×2");
  EXPECT_EQ(problem([](Model& m) { m.projections->value.weight = arma::mat(4, 3); }),
            "projections.value.weight: expected 3×4 " + meaning + ", got 4×3");
  EXPECT_EQ(problem([](Model& m) { m.projections->output->weight = arma::mat(5, 4); }),
            "projections.output.weight: expected 4×4 (d_out rows), got 5×4");
  EXPECT_EQ(problem([](Model& m) { m.projections->output->weight = arma::mat(4, 0); }),
            "projections.output.weight: expected at least one column");
  EXPECT_EQ(problem([](Model& m) { m.projections->key.bias = arma::mat(1, 3); }),
            "projections.key.bias: expected 1×4 (one number for each column of the weight), got 1×3");
  EXPECT_EQ(problem([](Model& m) { m.projections->value.weight.edit()(2, 3) = -INFINITY; }),
            "projections.value.weight[2][3]: expected a finite number");
  EXPECT_EQ(problem([](Model& m) { m.projections->query.weight = arma::mat(3, 0); }),
            "projections.query.weight: expected at least one column (d_out)");
}

TEST(Check, NamesHeadsThatDoNotDivideTheWidth) {
  EXPECT_EQ(problem([](Model& m) { m.n_heads = 0; }), "n_heads: expected at least one head");
  EXPECT_EQ(problem([](Model& m) { m.n_heads = 3; }),
            "n_heads: expected a number of heads that divides d_out = 4, got 3");
}

TEST(Check, NamesAScaleThatIsNotFinite) {
  EXPECT_EQ(problem([](Model& m) { m.scale = {ScaleRule::factor, NAN}; }), "scale: expected a finite number");
}

TEST(Check, NamesMaskCellsOutOfPlaceOrOrder) {
  EXPECT_EQ(problem([](Model& m) {
              m.mask.cells[1] = {2, 0, true};
            }),
            "mask.cells[1]: expected a row and a column below 2, got 2 and 0");
  EXPECT_EQ(problem([](Model& m) { std::swap(m.mask.cells[0], m.mask.cells[1]); }),
            "mask.cells[1]: expected each cell once, sorted by row, then column");
  EXPECT_EQ(problem([](Model& m) { m.mask.cells[1] = m.mask.cells[0]; }),
            "mask.cells[1]: expected each cell once, sorted by row, then column");
}

TEST(Check, NamesDropoutOutOfRangeOrShape) {
  for (double rate : {1.5, -0.5, static_cast<double>(NAN)})
    EXPECT_EQ(problem([&](Model& m) { m.dropout.rate = rate; }),
              "dropout.rate: expected a number from 0 to 1");
  EXPECT_EQ(problem([](Model& m) { m.dropout.given.pop_back(); }),
            "dropout.mask: expected 2 matrices, one for each head of each sequence, got 1");
  EXPECT_EQ(problem([](Model& m) { m.dropout.given[1] = arma::mat(2, 3); }),
            "dropout.mask[1]: expected 2×2 (n_tokens × n_keys), got 2×3");
  EXPECT_EQ(problem([](Model& m) { m.dropout.given[3].edit()(1, 0) = 0.5; }, 2),
            "dropout.mask[1][1][1][0]: expected 0 (dropped) or 1 (kept)");
}

}  // namespace
}  // namespace core::attention
