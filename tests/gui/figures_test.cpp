#include "app/figures.hpp"

#include <gtest/gtest.h>

#include "core/attention/attend.hpp"
#include "tests/support/random_model.hpp"

namespace app {
namespace {

using core::attention::Trace;

std::shared_ptr<const Trace> trace_of(std::size_t n_tokens) {
  support::Random random(51);
  return std::make_shared<const Trace>(core::attention::attend(support::model(random, n_tokens, 8, 8, 4)));
}

/// Asks as frames do, until the facts are there.
const std::vector<core::attention::HeadFacts>& facts_in_the_end(Figures& figures,
                                                                const std::shared_ptr<const Trace>& trace,
                                                                std::span<const std::string> tokens) {
  do {
    figures.read_from(trace);
    figures.heads(*trace, 1, tokens);
  } while (figures.is_busy());
  return figures.heads(*trace, 1, tokens);
}

TEST(Figures, OfASmallTraceAreThereAtOnce) {
  const auto trace = trace_of(12);
  const auto tokens = core::attention::numbered_tokens(12);
  Figures figures;
  figures.read_from(trace);
  const auto& facts = figures.heads(*trace, 1, tokens);
  ASSERT_EQ(facts.size(), 4u);
  EXPECT_EQ(facts[2].entropy_bits, core::attention::head_facts(trace->heads[2].weights, tokens).entropy_bits);
  EXPECT_FALSE(figures.is_busy());
}

TEST(Figures, OfALargeTraceAreEmptyUntilTheyHaveBeenWorkedOut) {
  const auto trace = trace_of(400);
  const auto tokens = core::attention::numbered_tokens(400);
  Figures figures;
  figures.read_from(trace);
  const auto& facts = figures.heads(*trace, 1, tokens);
  ASSERT_EQ(facts.size(), 4u);
  EXPECT_FALSE(facts[0].entropy_bits.has_value());
  EXPECT_EQ(facts_in_the_end(figures, trace, tokens)[0].entropy_bits,
            core::attention::head_facts(trace->heads[0].weights, tokens).entropy_bits);
}

TEST(Figures, AreNotBegunForATraceThatIsSeenInOneFrameOnly) {
  const auto trace = trace_of(400);
  const auto tokens = core::attention::numbered_tokens(400);
  Figures figures;
  for (std::uint64_t version = 1; version < 20; ++version) {  // a drag
    figures.read_from(trace);
    for (int head = 0; head < 4; ++head) figures.heads(*trace, version, tokens);
  }
  EXPECT_EQ(trace.use_count(), 2);  // no job holds it
}

TEST(Figures, OfTheRowsOfTwoStagesAreThereInTheEnd) {
  using core::attention::Stage;
  const auto trace = trace_of(400);
  Figures figures;
  const auto ask = [&] {
    figures.read_from(trace);
    const bool weights = figures.rows(*trace, 1, Stage::weights, 2).size() == 400;
    return figures.rows(*trace, 1, Stage::scores, 1).size() == 400 && weights;
  };
  EXPECT_FALSE(ask());
  while (!ask()) {
  }
  EXPECT_EQ(figures.rows(*trace, 1, Stage::weights, 2)[399].entropy_bits,
            core::attention::row_facts(trace->heads[2].weights, 399).entropy_bits);
}

TEST(Figures, OfRowsOfAHeadThatTheNextTraceHasNotAreForgotten) {
  using core::attention::Stage;
  support::Random random(52);
  const Trace many = core::attention::attend(support::model(random, 6, 8, 8, 8)),
              one = core::attention::attend(support::model(random, 6, 8, 8, 1));
  Figures figures;
  figures.read_from(nullptr);
  EXPECT_EQ(figures.rows(many, 1, Stage::weights, 7).size(), 6u);
  figures.read_from(nullptr);
  const auto& rows = figures.rows(one, 2, Stage::weights, 0);
  ASSERT_EQ(rows.size(), 6u);
  EXPECT_NEAR(rows[5].sum, 1, 1e-12);
}

TEST(Figures, LetGoOfTheTraceWhenTheyAreStopped) {
  auto trace = trace_of(400);
  const auto tokens = core::attention::numbered_tokens(400);
  Figures figures;
  for (int look = 0; look < 3; ++look) {
    figures.read_from(trace);
    figures.heads(*trace, 1, tokens);
  }
  figures.stop();
  EXPECT_EQ(trace.use_count(), 1);
  EXPECT_FALSE(figures.is_busy());
}

}  // namespace
}  // namespace app
