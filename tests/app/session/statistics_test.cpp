#include "app/session/statistics.hpp"

#include <gmock/gmock.h>

#include "tests/support/random_model.hpp"
#include "tests/support/waiting.hpp"

namespace app {
namespace {

using core::attention::Stage;
using testing::ElementsAre;

struct StatisticsOfATrace : testing::Test {
  Jobs jobs;
  Statistics statistics{jobs};
  std::optional<LiveTrace> live;
  std::vector<std::string> tokens;

  void of(std::size_t n_tokens) {
    support::Random random(51);
    tokens = core::attention::numbered_tokens(n_tokens);
    live.emplace(jobs, support::model(random, n_tokens, 8, 8, 4), 1e9);
    statistics.follow_trace(*live);
  }
  void next_frame() {
    jobs.finish();
    statistics.follow_trace(*live);
  }
  const std::vector<core::attention::HeadStatistics>& heads(std::uint64_t version = 1) {
    return statistics.heads(live->trace(), version, tokens);
  }
  std::optional<double> entropy_of(std::size_t head) const {
    return core::attention::head_statistics(live->trace().at(Stage::weights, head), tokens).entropy_bits;
  }
};

TEST_F(StatisticsOfATrace, AreThereAtOnceWhenItIsSmall) {
  of(12);
  ASSERT_EQ(heads().size(), 4u);
  EXPECT_EQ(heads()[2].entropy_bits, entropy_of(2));
  EXPECT_FALSE(statistics.is_busy());
}

TEST_F(StatisticsOfATrace, AreEmptyUntilTheyHaveBeenWorkedOutWhenItIsLarge) {
  of(400);
  ASSERT_EQ(heads().size(), 4u);
  EXPECT_FALSE(heads()[0].entropy_bits.has_value());
  while (statistics.is_busy()) next_frame(), heads();
  EXPECT_EQ(heads()[0].entropy_bits, entropy_of(0));
}

TEST_F(StatisticsOfATrace, AreNotBegunForATraceThatIsSeenInOneFrameOnly) {
  of(400);
  for (std::uint64_t version = 1; version < 20; ++version) {  // a drag
    next_frame();
    heads(version);
  }
  next_frame();
  EXPECT_FALSE(heads(20)[0].entropy_bits.has_value());
}

TEST_F(StatisticsOfATrace, OfTheRowsOfTwoStagesAreThereInTheEnd) {
  of(400);
  const auto ask = [&] {
    next_frame();
    const bool weights = statistics.rows(live->trace(), 1, Stage::weights, 2).size() == 400;
    return statistics.rows(live->trace(), 1, Stage::scores, 1).size() == 400 && weights;
  };
  EXPECT_FALSE(ask());
  while (!ask()) {
  }
  EXPECT_EQ(statistics.rows(live->trace(), 1, Stage::weights, 2)[399].entropy_bits,
            core::attention::row_statistics(live->trace().at(Stage::weights, 2), 399).entropy_bits);
}

TEST_F(StatisticsOfATrace, OfRowsOfAHeadThatTheNextTraceHasNotAreForgotten) {
  support::Random random(52);
  const LiveTrace many(jobs, support::model(random, 6, 8, 8, 8), 1e9),
      one(jobs, support::model(random, 6, 8, 8, 1), 1e9);
  statistics.follow_trace(many);
  EXPECT_EQ(statistics.rows(many.trace(), 1, Stage::weights, 7).size(), 6u);
  statistics.follow_trace(one);
  const auto& rows = statistics.rows(one.trace(), 2, Stage::weights, 0);
  ASSERT_EQ(rows.size(), 6u);
  EXPECT_NEAR(rows[5].sum, 1, 1e-12);
}

TEST_F(StatisticsOfATrace, GiveItBackWhenItIsToChangeInPlace) {
  of(400);
  bool in_place = false;
  for (int attempt = 0; attempt < 20 && !in_place; ++attempt) {  // a busy machine is sometimes too slow
    for (int frame = 0; frame < 3; ++frame) {
      jobs.deliver();
      statistics.follow_trace(*live);
      heads();
      statistics.similarity(live->trace(), 1);
    }
    const auto* trace = &live->trace();
    core::attention::Model model = live->model();
    model.sequences[0].embeddings = arma::mat(*model.sequences[0].embeddings + 1.0);
    live->follow(model, 0);
    in_place = !live->is_behind() && &live->trace() == trace;
    support::catch_up(jobs, *live, model);
  }
  EXPECT_TRUE(in_place) << "changed in place";
  next_frame();
  while (heads(2), statistics.is_busy()) next_frame();
  EXPECT_EQ(heads(2)[0].entropy_bits, entropy_of(0));
}

core::attention::Trace three_tokens(std::vector<arma::mat> weights) {
  core::attention::Trace trace(weights.size());
  trace.at(Stage::mask) = arma::mat{{1, 0, 0}, {1, 1, 0}, {1, 1, 1}};
  for (std::size_t h = 0; h < weights.size(); ++h) trace.at(Stage::weights, h) = std::move(weights[h]);
  return trace;
}

const arma::mat one_head{{1, 0, 0}, {0.25, 0.75, 0}, {0.125, 0.5, 0.375}};
const arma::mat other_head{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};

TEST(TokenLines, LeaveOutWhatIsBelowTheThresholdAndSayHowMuchTheyCarry) {
  const auto found = token_lines(three_tokens({one_head}), {{0}, 0.375, std::nullopt, 100});
  EXPECT_THAT(found.lines, ElementsAre(TokenLine{2, 2, 0, 0.375}, TokenLine{2, 1, 0, 0.5},
                                       TokenLine{1, 1, 0, 0.75}, TokenLine{0, 0, 0, 1}));
  EXPECT_EQ(found.n_unmasked, 6u);
  EXPECT_EQ(found.n_above, 4u);
  EXPECT_DOUBLE_EQ(found.line_weight, 2.625);
  EXPECT_DOUBLE_EQ(found.total, 3);
}

TEST(TokenLines, AreOfTheChosenHeadsAndNeverOfZero) {
  const auto found = token_lines(three_tokens({one_head, other_head}), {{1}, 0, std::nullopt, 100});
  EXPECT_THAT(found.lines, ElementsAre(TokenLine{0, 0, 1, 1}, TokenLine{1, 1, 1, 1}, TokenLine{2, 2, 1, 1}));
  EXPECT_TRUE(token_lines(three_tokens({one_head, other_head}), {{}, 0, std::nullopt, 100}).lines.empty());
}

TEST(TokenLines, AreTheStrongestAndThoseOfTheQueryWhenTheyAreTooMany) {
  const auto trace = three_tokens({one_head});
  const auto strongest = token_lines(trace, {{0}, 0, std::nullopt, 2});
  EXPECT_THAT(strongest.lines, ElementsAre(TokenLine{1, 1, 0, 0.75}, TokenLine{0, 0, 0, 1}));
  EXPECT_EQ(strongest.n_above, 6u);
  const auto of_query = token_lines(trace, {{0}, 0, 2, 4});
  EXPECT_THAT(of_query.lines, ElementsAre(TokenLine{0, 0, 0, 1}, TokenLine{2, 0, 0, 0.125},
                                          TokenLine{2, 2, 0, 0.375}, TokenLine{2, 1, 0, 0.5}));
}

TEST(TokenLines, AreTheStrongestOfVeryMany) {
  constexpr std::size_t n = 60;
  core::attention::Trace trace(1);
  trace.at(Stage::mask) = arma::mat(n, n, arma::fill::ones);
  arma::mat weights(n, n);
  for (std::size_t k = 0; k < n * n; ++k)
    weights[k] = static_cast<double>((k * 1009 + 1) % (n * n)) / (n * n);
  trace.at(Stage::weights) = weights;
  const auto found = token_lines(trace, {{0}, 0.125, std::nullopt, 2});
  const std::vector<double> largest{found.lines.at(0).weight, found.lines.at(1).weight};
  EXPECT_THAT(largest, ElementsAre((n * n - 2.0) / (n * n), (n * n - 1.0) / (n * n)));
  EXPECT_EQ(found.n_above, n * n * 7 / 8);
}

TEST(TokenLines, PassOverRowsThatAreNotNumbers) {
  arma::mat lost = one_head;
  lost.row(1).fill(arma::datum::nan);
  const auto found = token_lines(three_tokens({lost}), {{0}, 0, std::nullopt, 100});
  EXPECT_EQ(found.lines.size(), 4u);
  EXPECT_DOUBLE_EQ(found.total, 2);
}

}  // namespace
}  // namespace app
