// Everything that runs beside the window at once, while numbers change under it.
#include <gtest/gtest.h>

#include "app/session/live_trace.hpp"
#include "app/session/picture_source.hpp"
#include "app/session/statistics.hpp"
#include "core/graph/attend.hpp"
#include "tests/support/random_model.hpp"
#include "tests/support/waiting.hpp"

namespace app {
namespace {

using core::attention::Model;
using core::attention::Stage;

class ManyEdits : public testing::TestWithParam<double> {};

TEST_P(ManyEdits, EndWithTheTraceOfTheLastModel) {
  support::Random random(61);
  Model model = support::model(random, 160, 12, 12, 4);
  Jobs jobs;
  LiveTrace live(jobs, model, GetParam());
  Statistics statistics(jobs);
  PictureSource source(jobs);
  const auto look = [&] {
    jobs.deliver();
    statistics.read_from(live);
    source.follow(live);
    const auto tokens = live.model().sequences[0].tokens;
    statistics.heads(live.trace(), live.version(), tokens);
    statistics.similarity(live.trace(), live.version());
    statistics.lines(live.trace(), live.version(), {{0, 1, 2, 3}, 0.01, std::nullopt, 500});
    for (const Stage stage : {Stage::scores, Stage::dropped_weights}) {
      statistics.rows(live.trace(), live.version(), stage, 1);
      source.is_ready(stage, 1);
    }
  };
  for (int edit = 0; edit < 150; ++edit) {
    arma::mat numbers = model.sequences[0].embeddings;
    numbers(support::below(random, numbers.n_rows), support::below(random, numbers.n_cols)) += 0.5;
    model.sequences[0].embeddings = numbers;
    if (edit % 40 == 39) model.mask.causal = !model.mask.causal;
    live.follow(model, 0);
    for (int frame = 0; frame < edit % 4; ++frame) look();  // now and then nothing has time to begin
  }
  support::catch_up(jobs, live, model);
  const core::attention::Trace expected = core::attention::attend(model);
  EXPECT_TRUE(
      arma::approx_equal(*live.trace().at(Stage::output), *expected.at(Stage::output), "both", 1e-12, 1e-10));
  for (std::size_t h = 0; h < 4; ++h)
    EXPECT_TRUE(arma::approx_equal(*live.trace().at(Stage::weights, h), *expected.at(Stage::weights, h),
                                   "both", 1e-12, 1e-10))
        << h;
}

INSTANTIATE_TEST_SUITE_P(AtOnceAndBesideTheWindow, ManyEdits, testing::Values(LiveTrace::frame_ms, 0.0));

}  // namespace
}  // namespace app
