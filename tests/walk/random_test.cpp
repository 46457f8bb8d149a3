// 15,000 random inputs (scripts/soak does a million), and edits faster than the trace can follow.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iostream>

#include "app/screen/window.hpp"
#include "core/base/number.hpp"
#include "core/graph/attend.hpp"
#include "core/graph/validation.hpp"
#include "tests/support/look.hpp"
#include "tests/support/random_model.hpp"
#include "tests/support/random_user.hpp"
#include "tests/walk/walk.hpp"

namespace walk {

using core::attention::Stage;
namespace {

namespace editing = core::editing;
using core::attention::ScaleRule;
using support::below;
using support::coin;

constexpr std::size_t n_tokens = 192, d_model = 24, n_heads = 4, n_steps = 400;

editing::Edit any_edit(support::Random& random) {
  using editing::MatrixName;
  constexpr MatrixName projections[] = {MatrixName::query_weight, MatrixName::key_weight,
                                        MatrixName::value_weight, MatrixName::output_weight};
  switch (below(random, 12)) {
    case 0:
      return editing::SetCausal{coin(random)};
    case 1:
      return editing::SetDropoutRate{double(below(random, 4)) * 0.2};
    case 2:
      return editing::SetDropoutSeed{below(random, 100)};
    case 3:
      return editing::SwitchMaskCell{below(random, n_tokens), below(random, n_tokens), coin(random)};
    case 4:
      return editing::SetScale{{coin(random) ? ScaleRule::none : ScaleRule::inverse_sqrt_d_head}};
    case 5:
    case 6:
    case 7:
      return editing::SetCell{{projections[below(random, 4)]},
                              below(random, d_model),
                              below(random, d_model),
                              support::number(random)};
    default:
      return editing::SetCell{
          {MatrixName::embeddings}, below(random, n_tokens), below(random, d_model), support::number(random)};
  }
}

void look_elsewhere(app::View& view, support::Random& random) {
  constexpr app::Tab tabs[] = {app::Tab::stages, app::Tab::heads, app::Tab::tokens, app::Tab::compare,
                               app::Tab::laboratory};
  view.look.tab = tabs[below(random, std::size(tabs))];
  view.look.head = below(random, n_heads);
}

TEST(RandomEdits, FollowedBesideTheWindowEndInTheTraceOfTheLastModel) {
  support::Random random(20261121);
  const support::TemporaryDirectory directory;  // the only place that may be written to
  Walk ui(1280, 800, 0);
  ui.sharp = false;
  ui.store.dispatch(app::ApplyEdit{
      editing::ReplaceModel{support::model(random, n_tokens, d_model, d_model, n_heads), "a larger model"}});
  ui.store.dispatch(app::AddReference{});
  for (std::size_t step = 0; step < n_steps; ++step) {
    for (std::size_t k = below(random, 4); k > 0; --k) ui.store.dispatch(app::ApplyEdit{any_edit(random)});
    if (below(random, 8) == 0) ui.store.dispatch(app::Undo{});
    if (below(random, 12) == 0) ui.store.dispatch(app::Redo{});
    if (below(random, 10) == 0)
      support::look(ui.store, [&](app::View& view) { look_elsewhere(view, random); });
    support::InputFrame hand;
    hand.mouse = ImVec2(static_cast<float>(below(random, 1280)), static_cast<float>(below(random, 800)));
    hand.wheel = below(random, 10) == 0 ? 1.f : 0.f;
    ui.play({hand});
  }
  while (ui.store.is_working() || ui.store.live().is_behind()) ui.run(1);
  const core::attention::Model& model = ui.store.model();
  ASSERT_EQ(ui.store.live().model(), model);
  const core::attention::Trace expected = core::attention::attend(model, ui.store.view().look.sequence);
  EXPECT_TRUE(arma::approx_equal(*ui.store.live().trace().at(Stage::output), *expected.at(Stage::output),
                                 "both", 1e-12, 1e-10));
  for (std::size_t h = 0; h < n_heads; ++h)
    EXPECT_TRUE(arma::approx_equal(*ui.store.live().trace().at(Stage::weights, h),
                                   *expected.at(Stage::weights, h), "both", 1e-12, 1e-10))
        << h;
}

constexpr std::size_t n_events = 15000, n_between_checks = 1000;
constexpr int width = 1120, height = 640;  // wide enough for both panels

/// Returns the number of events: ATTNSCOPE_EVENTS, or n_events if it is not set.
std::size_t events_from_environment() {
  const char* wish = std::getenv("ATTNSCOPE_EVENTS");
  return wish ? std::strtoull(wish, nullptr, 10) : n_events;
}

/// Returns the resident memory of the program in MiB.
std::size_t resident_mebibytes() {
  std::size_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * 4096 >> 20;
}

/// Compares the displayed weights with the reference computation, up to the rounding of scores.
void expect_right_weights(Walk& ui, std::size_t event) {
  while (ui.store.is_working() || ui.store.live().is_behind()) ui.run(1);
  const core::attention::Trace& shown = ui.store.live().trace();
  const auto expected = core::attention::attend(ui.store.live().model(), ui.store.view().look.sequence);
  ASSERT_EQ(shown.n_heads(), expected.n_heads()) << "event " << event;
  for (std::size_t h = 0; h < shown.n_heads(); ++h) {
    const arma::mat &got = *shown.at(Stage::weights, h), &right = *expected.at(Stage::weights, h);
    ASSERT_EQ(got.n_elem, right.n_elem) << "event " << event;
    const double tolerance = 1e-9 + 1e-13 * core::max_abs_finite(*expected.at(Stage::masked_scores, h));
    for (std::size_t k = 0; k < got.n_elem; ++k)
      ASSERT_TRUE((std::isnan(got[k]) && std::isnan(right[k])) || got[k] == right[k] ||
                  std::abs(got[k] - right[k]) <= tolerance)
          << "event " << event << ", head " << h << ", number " << k << ": " << got[k] << " for " << right[k];
  }
}

TEST(RandomInput, LeavesAModelThatCanBeComputedAndATraceThatIsItsOwn) {
  const support::TemporaryDirectory directory;  // the only place that may be written to
  Walk ui(width, height);
  ui.store.dispatch(app::BrowseTo{directory.path()});
  ui.sharp = false;
  support::RandomUser hands(20240607, {width, height});
  std::uint64_t last_version = 0;
  std::size_t changes = 0, in_dialogs = 0, presented = 0, early_mebibytes = 0;
  const std::size_t n = events_from_environment();
  for (std::size_t i = 0; i < n; ++i) {
    ui.play({hands.next(ui.landmarks())});
    if (i % n_between_checks == 0) {
      ui.window.wait(0);  // else events from the display would pile up
      expect_right_weights(ui, i);
    }
    if (i == n / 10) early_mebibytes = resident_mebibytes();
    if (n > n_events && i % (n / 20) == 0)
      std::cout << i << " events, " << changes << " models, " << resident_mebibytes() << " MiB" << std::endl;
    if (ui.store.view().forms.browser.directory != directory.path())
      ui.store.dispatch(app::BrowseTo{directory.path()});
    in_dialogs = ui.store.view().forms.dialog == app::Dialog::none ? 0 : in_dialogs + 1;
    if (in_dialogs > 40) ui.store.dispatch(app::CancelQuestion{});
    presented = ui.store.view().selection.presentation.on ? presented + 1 : 0;
    if (presented > 15) support::look(ui.store, [](app::View& v) { v.selection.presentation = {}; });
    if (ui.store.live().version() == last_version) continue;
    last_version = ui.store.live().version();
    ++changes;
    const auto problem = core::attention::check(ui.model());
    ASSERT_FALSE(problem.has_value()) << "event " << i << ": " << problem->path << ": " << problem->message;
    const core::attention::Trace& trace = ui.store.live().trace();
    const core::attention::Model& of_trace = ui.store.live().model();
    ASSERT_EQ(trace.n_heads(), of_trace.n_heads) << "event " << i;
    ASSERT_EQ(trace.at(Stage::output).n_rows(), of_trace.n_tokens()) << "event " << i;
    ASSERT_EQ(trace.at(Stage::output).n_cols(), of_trace.d_output()) << "event " << i;
  }
  EXPECT_GT(changes, n / 150) << "the hands have hit too little";
  if (n > n_events) {
    EXPECT_LT(resident_mebibytes(), early_mebibytes + 200) << "memory grows";
  }
}

}  // namespace
}  // namespace walk
