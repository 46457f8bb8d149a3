// Numbers and switches that change faster than they can be followed, while every view is looked at.
#include <gtest/gtest.h>

#include "core/graph/attend.hpp"
#include "tests/support/random_model.hpp"
#include "tests/walk/walk.hpp"

namespace walk {
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
  const support::TemporaryDirectory directory;  // nothing is to be written anywhere else
  Walk ui(1280, 800, 0);
  ui.sharp = false;
  ui.store.dispatch(app::ApplyEdit{
      editing::ReplaceModel{support::model(random, n_tokens, d_model, d_model, n_heads), "a larger model"}});
  ui.store.dispatch(app::KeepReference{});
  for (std::size_t step = 0; step < n_steps; ++step) {
    for (std::size_t k = below(random, 4); k > 0; --k) ui.store.dispatch(app::ApplyEdit{any_edit(random)});
    if (below(random, 8) == 0) ui.store.dispatch(app::Undo{});
    if (below(random, 12) == 0) ui.store.dispatch(app::Redo{});
    if (below(random, 10) == 0)
      ui.store.dispatch(app::ChangeView{[&](app::View& view) { look_elsewhere(view, random); }});
    support::InputFrame hand;
    hand.mouse = ImVec2(static_cast<float>(below(random, 1280)), static_cast<float>(below(random, 800)));
    hand.wheel = below(random, 10) == 0 ? 1.f : 0.f;
    ui.play({hand});
  }
  while (ui.store.is_working() || ui.store.live().is_behind()) ui.run(1);
  const core::attention::Model& model = ui.store.model();
  ASSERT_EQ(ui.store.live().model(), model);
  const core::attention::Trace expected = core::attention::attend(model, ui.store.view().look.sequence);
  EXPECT_TRUE(arma::approx_equal(*ui.store.live().trace().output, *expected.output, "both", 1e-12, 1e-10));
  for (std::size_t h = 0; h < n_heads; ++h)
    EXPECT_TRUE(arma::approx_equal(*ui.store.live().trace().heads[h].weights, *expected.heads[h].weights,
                                   "both", 1e-12, 1e-10))
        << h;
}

}  // namespace
}  // namespace walk
