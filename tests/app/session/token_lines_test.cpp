#include "app/session/statistics.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using app::LineChoice;
using app::TokenLine;
using testing::ElementsAre;

core::attention::Trace three_tokens(std::vector<arma::mat> weights) {
  core::attention::Trace trace(weights.size());
  trace.at(core::attention::Stage::mask) = arma::mat{{1, 0, 0}, {1, 1, 0}, {1, 1, 1}};
  for (std::size_t h = 0; h < weights.size(); ++h)
    trace.at(core::attention::Stage::weights, h) = std::move(weights[h]);
  return trace;
}

const arma::mat first{{1, 0, 0}, {0.25, 0.75, 0}, {0.125, 0.5, 0.375}};
const arma::mat second{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};

TEST(TokenLines, LeaveOutWhatIsBelowTheThresholdAndSayHowMuchTheyCarry) {
  const auto found = app::token_lines(three_tokens({first}), {{0}, 0.375, std::nullopt, 100});
  EXPECT_THAT(found.lines, ElementsAre(TokenLine{2, 2, 0, 0.375}, TokenLine{2, 1, 0, 0.5},
                                       TokenLine{1, 1, 0, 0.75}, TokenLine{0, 0, 0, 1}));
  EXPECT_EQ(found.visible, 6u);
  EXPECT_EQ(found.above, 4u);
  EXPECT_DOUBLE_EQ(found.carried, 2.625);
  EXPECT_DOUBLE_EQ(found.total, 3);
}

TEST(TokenLines, AreOfTheChosenHeadsAndNeverOfZero) {
  const auto found = app::token_lines(three_tokens({first, second}), {{1}, 0, std::nullopt, 100});
  EXPECT_THAT(found.lines, ElementsAre(TokenLine{0, 0, 1, 1}, TokenLine{1, 1, 1, 1}, TokenLine{2, 2, 1, 1}));
  EXPECT_TRUE(app::token_lines(three_tokens({first, second}), {{}, 0, std::nullopt, 100}).lines.empty());
}

TEST(TokenLines, AreTheStrongestAndThoseOfTheQueryWhenTheyAreTooMany) {
  const auto trace = three_tokens({first});
  const auto strongest = app::token_lines(trace, {{0}, 0, std::nullopt, 2});
  EXPECT_THAT(strongest.lines, ElementsAre(TokenLine{1, 1, 0, 0.75}, TokenLine{0, 0, 0, 1}));
  EXPECT_EQ(strongest.above, 6u);
  const auto of_query = app::token_lines(trace, {{0}, 0, 2, 4});
  EXPECT_THAT(of_query.lines, ElementsAre(TokenLine{0, 0, 0, 1}, TokenLine{2, 0, 0, 0.125},
                                          TokenLine{2, 2, 0, 0.375}, TokenLine{2, 1, 0, 0.5}));
}

TEST(TokenLines, AreTheStrongestOfVeryMany) {
  constexpr std::size_t n = 60;
  core::attention::Trace trace(1);
  trace.at(core::attention::Stage::mask) = arma::mat(n, n, arma::fill::ones);
  arma::mat weights(n, n);
  for (std::size_t k = 0; k < n * n; ++k)
    weights[k] = static_cast<double>((k * 1009 + 1) % (n * n)) / (n * n);
  trace.at(core::attention::Stage::weights) = weights;
  const auto found = app::token_lines(trace, {{0}, 0.125, std::nullopt, 2});
  const std::vector<double> largest{found.lines.at(0).weight, found.lines.at(1).weight};
  EXPECT_THAT(largest, ElementsAre((n * n - 2.0) / (n * n), (n * n - 1.0) / (n * n)));
  EXPECT_EQ(found.above, n * n * 7 / 8);
}

TEST(TokenLines, PassOverRowsThatAreNotNumbers) {
  arma::mat lost = first;
  lost.row(1).fill(arma::datum::nan);
  const auto found = app::token_lines(three_tokens({lost}), {{0}, 0, std::nullopt, 100});
  EXPECT_EQ(found.lines.size(), 4u);
  EXPECT_DOUBLE_EQ(found.total, 2);
}

}  // namespace
