#include "core/editing/draw.hpp"

#include <gtest/gtest.h>

#include "core/editing/presets.hpp"
#include "tests/support/json_fixture.hpp"

namespace core::editing {
namespace {

/// A tensor of a sequence of draws in the reference file of seed 123.
arma::mat reference(const std::string& sequence, const std::string& name) {
  const auto file = support::read_generator_file("seed123");
  for (const support::Draws& d : file.sequences.at(sequence))
    if (d.name == name) {
      const std::size_t columns = d.shape.back();
      return arma::reshape(arma::mat(d.data), columns, d.data.size() / columns).t();
    }
  throw std::runtime_error(sequence + " has no " + name);
}

attention::Model six_words() {
  return find_preset("000-causal")->make();
}

Fill fill(FillRule rule, const char* before = "", std::uint64_t seed = 123) {
  return {rule, seed, random::parse_draw_ops(before)};
}

TEST(Fill, WithFixedNumbersKeepsTheShape) {
  const attention::Model model = six_words();
  const MatrixPlace x{MatrixName::embeddings, 0};
  EXPECT_TRUE(arma::approx_equal(filled(model, x, fill(FillRule::zeros)), arma::zeros(6, 3), "absdiff", 0));
  EXPECT_TRUE(arma::approx_equal(filled(model, x, fill(FillRule::ones)), arma::ones(6, 3), "absdiff", 0));
  EXPECT_TRUE(arma::approx_equal(filled(model, x, fill(FillRule::identity)), arma::eye(6, 3), "absdiff", 0));
}

TEST(Fill, GivesEachMatrixOfNotebook000AtItsPlaceInTheSequence) {
  const attention::Model model = six_words();
  const auto equal = [](const arma::mat& a, const arma::mat& b) {
    return arma::approx_equal(a, b, "absdiff", 0);
  };
  EXPECT_TRUE(equal(filled(model, {MatrixName::embeddings, 0}, fill(FillRule::rand)),
                    reference("seed000", "inputs")));
  const auto layer = [&](MatrixName name, const char* before) {
    return filled(model, {name, 0}, fill(FillRule::linear, before));
  };
  EXPECT_TRUE(equal(layer(MatrixName::query_weight, "rand(6,3)"), reference("seed000", "W_Q").t()));
  EXPECT_TRUE(equal(layer(MatrixName::key_weight, "rand(6,3) Linear(3,3)"), reference("seed000", "W_K").t()));
  EXPECT_TRUE(equal(layer(MatrixName::value_weight, "rand(6,3)  Linear(3,3)Linear(3,3)"),
                    reference("seed000", "W_V").t()));
}

TEST(Fill, DrawsNormalNumbersAsRandnDoes) {
  const attention::Model model = six_words();
  for (const FillRule rule : {FillRule::randn, FillRule::embedding})
    EXPECT_TRUE(
        arma::approx_equal(filled(model, {}, fill(rule)), reference("seed003", "inputs"), "absdiff", 0));
}

/// The first and the last numbers of a reference tensor that is stored in parts.
void expect_parts(const arma::rowvec& numbers, const std::string& name) {
  SCOPED_TRACE(name);
  const auto file = support::read_generator_file("seed123");
  for (const support::Draws& d : file.sequences.at("two_linears_with_bias"))
    if (d.name == name) {
      const arma::rowvec head(d.sample.first), tail(d.sample.last);
      ASSERT_EQ(numbers.n_elem, d.shape.front());
      EXPECT_TRUE(arma::approx_equal(numbers.head(head.n_elem), head, "absdiff", 0));
      EXPECT_TRUE(arma::approx_equal(numbers.tail(tail.n_elem), tail, "absdiff", 0));
      return;
    }
  ADD_FAILURE() << "the file has no such tensor";
}

TEST(Fill, DrawsABiasAfterTheWeightOfItsLayer) {
  attention::Model model = six_words();
  model.sequences[0].embeddings = arma::mat(6, 16, arma::fill::zeros);
  model.projections->query = {arma::mat(16, 16, arma::fill::zeros), arma::mat(1, 16, arma::fill::zeros)};
  const MatrixPlace bias{MatrixName::query_bias, 0};
  expect_parts(filled(model, bias, fill(FillRule::linear)), "b1");
  expect_parts(filled(model, bias, fill(FillRule::linear, "Linear(16,16,bias)")), "b2");
}

TEST(Fill, TakesTheWidthOfTheOutputProjectionForItsBias) {
  attention::Model model = find_preset("multi-head")->make();  // 3 → 4 → 4
  random::Generator generator(7);
  generator.linear_weight(4, 4);
  const std::vector<float> expected = generator.linear_bias(4, 4);
  const arma::mat found = filled(model, {MatrixName::output_bias, 0}, fill(FillRule::linear, "", 7));
  EXPECT_EQ(arma::conv_to<std::vector<float>>::from(found.row(0)), expected);
}

}  // namespace
}  // namespace core::editing
