#include "core/check/check.hpp"

#include <gmock/gmock.h>

#include <fstream>

#include "core/files/tensor_formats.hpp"
#include "core/graph/rounding.hpp"

namespace core::check {
namespace {

const std::string folder = std::string(FIXTURES) + "/check/";

arma::mat part(const formats::Tensor& tensor, std::size_t head) {
  arma::mat m(tensor.shape[1], tensor.shape[2]);
  for (std::size_t i = 0; i < m.n_rows; ++i)
    for (std::size_t j = 0; j < m.n_cols; ++j) m(i, j) = tensor.numbers[(head * m.n_rows + i) * m.n_cols + j];
  return m;
}

/// A line of the list that NumPy wrote.
struct PatternCase {
  std::string name, columns, says;
};
std::vector<PatternCase> cases() {
  std::ifstream list(folder + "patterns.tsv");
  std::vector<PatternCase> all;
  PatternCase one;
  while (std::getline(list, one.name, '\t') && std::getline(list, one.columns, '\t') &&
         std::getline(list, one.says))
    all.push_back(one);
  return all;
}

TEST(Pattern, SaysWhereNumbersDifferAndNothingOfRandomDifferences) {
  const auto file = formats::open_tensors(folder + "patterns.npz");
  std::size_t n_random = 0;
  for (const PatternCase& one : cases()) {
    const formats::Tensor ours = file.read(one.name + "/ours"), observed = file.read(one.name + "/theirs");
    std::vector<HeadDifference> heads;
    for (std::size_t h = 0; h < ours.shape[0]; ++h) heads.push_back({h, part(observed, h), part(ours, h)});
    const PatternOptions stage{ours.shape[0], one.columns == "keys",
                               [](double number) { return 1e-6 + 1e-5 * std::abs(number); }};
    EXPECT_EQ(describe_pattern(heads, stage), one.says) << one.name;
    n_random += one.says.empty();
  }
  EXPECT_GE(cases().size(), 50u);
  EXPECT_GE(n_random, 25u);
}

TEST(Pattern, SeesAFactorThroughTheRoundingOfBfloat16) {
  using attention::Precision;
  arma::mat ours(12, 24);
  for (arma::uword k = 0; k < ours.n_elem; ++k) ours[k] = static_cast<double>(k * 7 % 31) - 15.3;
  const PatternOptions stage{1, false,
                             [](double x) { return attention::rounding_error(Precision::bfloat16, x); }};
  const arma::mat observed = attention::rounded(Precision::bfloat16, arma::mat(1.02 * ours));
  EXPECT_THAT(describe_pattern({{0, observed, ours}}, stage),
              testing::StartsWith("all rows by a factor 1.0"));
}

}  // namespace
}  // namespace core::check
