// How often a frame builds the graph of a model: the displayed one is kept.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "app/session/command.hpp"
#include "core/graph/graph.hpp"
#include "core/graph/injected_bugs.hpp"
#include "tests/support/program.hpp"

namespace {
thread_local std::size_t n_built = 0;
}  // namespace

// The linker's --wrap sends every call of core::graph::attention() here.
core::graph::Graph counted_attention(const core::attention::Model& model) asm(
    "__wrap__ZN4core5graph9attentionERKNS_9attention5ModelE");
core::graph::Graph attention(const core::attention::Model& model) asm(
    "__real__ZN4core5graph9attentionERKNS_9attention5ModelE");

core::graph::Graph counted_attention(const core::attention::Model& model) {
  ++n_built;
  return attention(model);
}

namespace {

using app::Tab;
using core::attention::Stage;

constexpr std::size_t max_graphs = 10;

struct FrameGraphs : testing::Test {
  std::size_t n_before = 0, most = 0;
  gui::Panels ui{[this](const app::Frame& frame) {
    app::draw_window(frame);
    most = std::max(most, n_built - n_before);
    n_before = n_built;
  }};

  void TearDown() override { EXPECT_GT(n_built, 0u) << "the calls are not counted"; }

  void expect_few(const std::string& what) {
    ui.run(4);  // until everything is drawn and known
    most = 0;
    ui.run(2);
    EXPECT_LE(most, max_graphs) << what;
  }
  /// Shows every view of the model, with a pinned cell and without.
  void expect_few_in_all_views(const std::string& model) {
    for (const bool pins : {false, true}) {
      ui.look([&](app::View& view) {
        view.selection.pinned.reset();
        if (pins) view.selection.pinned = app::CellRef{Stage::weights, 0, 2, 1};
      });
      for (const Tab tab : {Tab::stages, Tab::heads, Tab::tokens, Tab::laboratory}) {
        ui.look([&](app::View& view) { view.look.tab = tab; });
        expect_few(model + ", view " + std::to_string(static_cast<int>(tab)) + (pins ? ", pinned" : ""));
      }
      ui.look([&](app::View& view) {
        view.look.tab = Tab::stages;
        for (const auto& stage : core::attention::stages()) view.look.code_lines.insert(stage.stage);
      });
      expect_few(model + ", lines of code");
      ui.look([&](app::View& view) { view.look.code_lines.clear(), view.look.large = Stage::weights; });
      expect_few(model + ", one stage");
      ui.look([&](app::View& view) {
        view.look.large.reset(), view.look.colors.range = app::ColorRangeRule::all_heads;
      });
      expect_few(model + ", one range of colors");
      ui.look([&](app::View& view) { view.look.colors = {}, view.selection.presentation.on = true; });
      expect_few(model + ", presentation");
      ui.look([&](app::View& view) { view.selection.presentation.on = false; });
    }
  }
};

TEST_F(FrameGraphs, AreFewInEveryViewOfEveryKindOfModel) {
  expect_few_in_all_views("the first preset");
  for (const char* preset :
       {"modern-llama", "modern-cap", "modern-alibi", "modern-cross", "004-causal-dropout"}) {
    ui.load(preset);
    expect_few_in_all_views(preset);
  }
}

TEST_F(FrameGraphs, AreFewWithAnInjectedBug) {
  ui.show(injected(*core::bugs::find_offered_bug("heads_interleaved"), ui.model()));
  expect_few_in_all_views("a model with a bug");
}

TEST_F(FrameGraphs, AreFewInAComparison) {
  ui.store.dispatch(app::AddReference{});
  ui.change([](auto& model) { model.mask.causal = !model.mask.causal; });
  ui.look([](app::View& view) { view.look.tab = Tab::compare; });
  expect_few("a comparison");
}

}  // namespace
