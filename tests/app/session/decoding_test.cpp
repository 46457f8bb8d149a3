// Decoding displays the same numbers as a model of the tokens so far.
#include "app/session/navigation.hpp"

#include <gtest/gtest.h>

#include "app/session/remembered.hpp"
#include "core/editing/edit.hpp"
#include "core/editing/presets.hpp"
#include "core/graph/attend.hpp"
#include "core/graph/stages.hpp"
#include "tests/support/program.hpp"

namespace app {
namespace {

using core::attention::RowTokens;

/// Returns the largest difference between a row of a stage of all tokens and of the tokens so far.
double difference(const arma::mat& all, const arma::mat& so_far, std::size_t row) {
  const arma::rowvec a = all.row(row).head(so_far.n_cols), b = so_far.row(row);
  double largest = 0;
  for (arma::uword j = 0; j < b.n_elem; ++j)
    if (a(j) != b(j) && !(std::isnan(a(j)) && std::isnan(b(j))))
      largest = std::max(largest, std::abs(a(j) - b(j)));
  return largest;
}

TEST(Decoding, ShowsRowsThatTheTokensSoFarGive) {
  std::size_t decoded = 0;
  for (const auto& preset : core::editing::presets()) {
    core::attention::Model model = preset.make();
    model.dropout.training = false;
    if (!decoding_problem(model).empty()) continue;
    ++decoded;
    SCOPED_TRACE(preset.name);
    const core::attention::Trace all = core::attention::attend(model, 0);
    for (std::size_t t = 0; t < model.n_tokens(); ++t) {
      const auto so_far = core::editing::apply(model, core::editing::SetTokenCount{t + 1});
      const core::attention::Trace trace = core::attention::attend(so_far, 0);
      for (const auto& stage : core::attention::stages()) {
        if ((stage.rows != RowTokens::queries && stage.rows != RowTokens::keys) || !stage.present(model))
          continue;
        for (std::size_t h = 0; h < stage.count(model.n_heads); ++h)
          EXPECT_LT(difference(all.at(stage.stage, h), trace.at(stage.stage, h), t), 1e-12)
              << stage.name << ", head " << h << ", token " << t;
      }
    }
  }
  EXPECT_GE(decoded, 10u);
}

TEST(Decoding, IsRefusedWhereEarlierRowsWouldChange) {
  const core::attention::Model plain = core::editing::find_preset("004-causal")->make();
  EXPECT_EQ(decoding_problem(plain), "");
  const auto refused = [&](const core::editing::Edit& edit) {
    return !decoding_problem(core::editing::apply(plain, edit)).empty();
  };
  EXPECT_TRUE(refused(core::editing::SetCausal{false}));
  EXPECT_TRUE(refused(core::editing::SwitchMaskCell{0, 2, true}));
  EXPECT_TRUE(refused(core::editing::SetPrefixLength{2}));
  EXPECT_TRUE(refused(core::editing::SetMaskMethod{core::attention::MaskMethod::renormalize}));
  EXPECT_FALSE(refused(core::editing::SwitchMaskCell{2, 0, false}));
  EXPECT_FALSE(refused(core::editing::SetSlidingWindow{{1, 0}}));
  EXPECT_FALSE(decoding_problem(core::editing::find_preset("modern-cross")->make()).empty());
}

TEST(Decoding, GoesTokenByTokenAndStaysWithinTheTokens) {
  View view;
  StepDecoding{3, 1}.change(view);
  EXPECT_EQ(view.look.positions.decoded, 0u);
  for (int k = 0; k < 5; ++k) StepDecoding{3, 1}.change(view);
  EXPECT_EQ(view.look.positions.decoded, 2u);
  StepDecoding{3, -1}.change(view);
  EXPECT_EQ(view.look.positions.decoded, 1u);
}

TEST(Decoding, LightsTheNewRowOfEveryStageInTheWindow) {
  gui::Program p;
  p.store.dispatch(LoadPreset{"000-causal"});
  p.run();
  EXPECT_FALSE(p.has("decode/new/weights"));
  for (int k = 0; k < 3; ++k) p.key(Key::j);
  p.run();
  EXPECT_EQ(p.store.view().look.positions.decoded, 2u);
  const auto row = [&](const char* stage) { return p.rect(std::string("decode/new/") + stage); };
  const auto whole = p.rect("strip/scores");
  const float pitch = (whole.max.y - whole.min.y) / 6;
  EXPECT_NEAR(row("scores").min.y, whole.min.y + 2 * pitch, 1.5);
  EXPECT_NEAR(row("scores").max.y, whole.min.y + 3 * pitch, 1.5);
  for (const char* stage : {"queries", "keys", "values", "contexts"})
    EXPECT_TRUE(p.has(std::string("decode/new/") + stage)) << stage;
  p.click("decode/back");
  EXPECT_EQ(p.store.view().look.positions.decoded, 1u);
  EXPECT_NE(view_text(p.store.view()).find("\"decoded\": 1"), std::string::npos);
  View again;
  restore_view(view_text(p.store.view()), again);
  EXPECT_EQ(again.look.positions.decoded, 1u);
  p.key(Key::c);  // later keys are unmasked
  p.run();
  EXPECT_FALSE(p.has("decode/new/weights"));
  p.key(Key::j);
  EXPECT_FALSE(p.store.view().look.positions.decoded);
}

}  // namespace
}  // namespace app
