// Background work of the window; a whole model.
#include <gmock/gmock.h>

#include "app/theme/imgui_compat.hpp"
#include "tests/support/attached_server.hpp"
#include "tests/support/imgui_input.hpp"
#include "tests/support/look.hpp"
#include "tests/support/waiting.hpp"
#include "tests/walk/walk.hpp"

namespace walk {
namespace {

struct LargeModel : testing::Test {
  Walk ui;
  void SetUp() override {
    ui.sharp = false;
    ui.store.dispatch(app::ApplyEdit{core::editing::SetTokenCount{420}});
    rest();
  }
  /// Runs frames until no work is left.
  void rest() {
    do {
      ui.run(1);
    } while (ui.store.live().is_behind() || ui.store.is_working() || ui.loop.is_working());
  }
  void put_space(bool down) {
    ui.loop.frame([down](ImGuiIO& io) { support::put_key(io, ImGuiKey_Space, down); });
  }
};

TEST_F(LargeModel, IsShownWithoutAStageThatTheWindowsThreadMade) {
  ui.store.dispatch(app::ApplyEdit{core::editing::SetCell{{}, 0, 0, 0.5}});
  while (ui.store.live().is_behind()) ui.store.update();
  ui.loop.frame();
  EXPECT_FALSE(ui.store.live().trace().at(core::attention::Stage::scores, 0).is_materialized());
  EXPECT_FALSE(ui.store.live().trace().at(core::attention::Stage::mask).is_materialized());
  rest();
  EXPECT_TRUE(ui.store.live().trace().at(core::attention::Stage::scores, 0).is_materialized());
}

TEST_F(LargeModel, IsReplacedByAKeptOneWhoseStagesAreMadeBesideTheWindowToo) {
  ui.store.dispatch(app::AddReference{});
  ui.store.dispatch(app::ApplyEdit{core::editing::SetCell{{}, 0, 0, 0.5}});
  rest();
  put_space(true);
  while (!ui.store.live_comparison().snapshot()) ui.store.update();
  const auto trace = ui.store.live_comparison().snapshot()->read_lock().trace;
  EXPECT_FALSE(trace->at(core::attention::Stage::scores, 0).is_materialized());
  ui.loop.frame();  // the first frame that may show it
  EXPECT_FALSE(trace->at(core::attention::Stage::scores, 0).is_materialized());
  EXPECT_TRUE(ui.loop.is_working());
  rest();
  EXPECT_TRUE(trace->at(core::attention::Stage::scores, 0).is_materialized());
  put_space(false);
  EXPECT_EQ(ui.store.live_comparison().snapshot(), nullptr);
  rest();
}

const std::string tiny_gpt = WALK_EXAMPLES "/tiny_gpt";

struct WholeModel : Program {
  WholeModel() { ui.sharp = false; }
  /// Runs frames until everything requested is displayed.
  void settle() {
    support::settle(ui.store, [&] { ui.run(1); });
    ui.run();
  }
  const app::Prediction& next() const { return *ui.store.pending().reading->prediction(); }
  /// Removes the causal mask of the displayed layer and returns to the layers.
  void unmask_in_stages() {
    ui.click("tabs/Stages");
    ui.click("model/causal");
    settle();
    EXPECT_FALSE(ui.model().mask.causal);
    ui.click("tabs/Layers");
    settle();
  }
};

TEST_F(WholeModel, IsOpenedTypedAtAndItsInductionHeadsAreSwitchedOff) {
  ui.key(Key::o, {.ctrl = true});
  ui.fill_in("browser/name", tiny_gpt + "/model.fp16.safetensors");
  settle();
  ASSERT_TRUE(ui.store.pending().full_model);
  ASSERT_EQ(ui.store.view().look.tab, app::Tab::layers);

  ui.click("whole/prompt");
  ui.key(Key::a, {.ctrl = true});
  ui.type("egg jam fig and egg jam f");
  settle();
  EXPECT_EQ(next().chosen.text, "ig");
  EXPECT_NEAR(next().chosen.now, 0.92852, 1e-4);

  ui.click("next/686");  // stays selected even if another token becomes more probable
  ui.click("layers/2.3");
  settle();
  EXPECT_EQ(ui.store.pending().full_model->layer, 2u);
  EXPECT_EQ(ui.store.view().look.head, 3u);
  EXPECT_GT((*ui.store.pending().reading->random_roles())[2][3].induction.value(), 0.8);
  ui.key(Key::x);
  settle();
  EXPECT_NEAR(next().chosen.now, 0.37603, 1e-4);  // NumPy's (tests/fixtures/transformer/make_lens.py)
  EXPECT_TRUE(ui.has("whole/edit/2.3"));
  ui.click("layers/2.0");
  settle();
  ui.key(Key::x);
  settle();
  EXPECT_NEAR(next().chosen.now, 0.01349, 1e-4);

  ui.key(Key::page_up);
  settle();
  EXPECT_EQ(ui.store.pending().full_model->layer, 1u);
  ui.key(Key::page_down);
  settle();
  ui.click("tabs/Stages");
  EXPECT_EQ(ui.model().heads_off, (std::vector<std::size_t>{0, 3}));
  const auto figure = directory / "weights.svg";
  ui.store.dispatch(app::ExportAs{app::ExportFormat::svg, app::ExportScope::stage,
                                  app::CellRef{Stage::weights, 3, 0, 0}, figure});
  settle();
  EXPECT_TRUE(std::filesystem::exists(figure)) << ui.store.message().text;

  ui.click("tabs/Layers");
  ui.run();
  ui.click("whole/edit/2.3");
  ui.click("whole/undo_all");
  settle();
  EXPECT_NEAR(next().chosen.now, 0.92852, 1e-4);
  EXPECT_FALSE(ui.store.pending().full_model->experiment.is_edited());
}

TEST_F(WholeModel, IsEditedInOneLayerAndTheNextTokenFollows) {
  ui.store.open(tiny_gpt, "egg jam fig and egg jam f", 2);
  settle();
  const double before = next().chosen.now;
  unmask_in_stages();
  EXPECT_NE(next().chosen.now, before);
  EXPECT_TRUE(ui.has("whole/edit/2"));
  ui.key(Key::z, {.ctrl = true});
  settle();
  EXPECT_NEAR(next().chosen.now, before, 1e-6);
}

TEST_F(WholeModel, IsFollowedThroughItsResidualStream) {
  ui.store.open(tiny_gpt, "egg jam fig and egg jam f", 2);
  settle();
  ui.click("tabs/Stages");
  support::look(ui.store, [](app::View& view) {
    view.selection.pinned = app::CellRef{Stage::embeddings, 0, 13, 5};
  });
  settle();
  ASSERT_TRUE(ui.has("inspector/stream"));
  ui.click("inspector/stream/before");
  settle();
  EXPECT_EQ(ui.store.pending().full_model->layer, 1u);
  EXPECT_EQ(ui.store.view().selection.pinned, (app::CellRef{Stage::output, 0, 13, 5}));
  const auto inspector = ui.rect("region/inspector");
  ui.play(support::move_to({inspector.max.x - 20, inspector.max.y - 20}));
  for (int turns = 0; turns < 5 && ui.rect("inspector/stream/behind").max.y > inspector.max.y; ++turns) {
    support::InputFrame turn;
    turn.wheel = -4;
    ui.play({turn});
  }
  ui.click("inspector/stream/behind");
  settle();
  EXPECT_EQ(ui.store.pending().full_model->layer, 2u);
  EXPECT_EQ(ui.store.view().selection.pinned, (app::CellRef{Stage::embeddings, 0, 13, 5}));
}

TEST_F(WholeModel, IsAttachedAndEditedWhereItIs) {
  support::AttachedServer server(tiny_gpt);
  ui.store.attach(server.address(), "right", "egg jam fig and egg jam f", 2);
  settle();
  EXPECT_EQ(ui.store.message().text,
            "Attached to TinyModel at " + server.address() + ": 4 layers of 4 heads");
  EXPECT_EQ(next().chosen.text, "ig");
  EXPECT_NEAR(next().chosen.now, 0.92852, 1e-4);

  ui.click("layers/2.3");
  settle();
  EXPECT_GT((*ui.store.pending().reading->random_roles())[2][3].induction.value(), 0.8);
  ui.key(Key::x);
  settle();
  EXPECT_NEAR(next().chosen.now, 0.37603, 1e-4);
  ui.click("whole/edit/2.3");
  settle();

  ui.click("whole/prompt");
  ui.key(Key::a, {.ctrl = true});
  ui.type("egg jam egg j");
  settle();
  const double before = next().chosen.now;
  ui.key(Key::escape);
  unmask_in_stages();
  const double after = next().chosen.now;
  EXPECT_NE(after, before);
  ui.store.dispatch(app::SaveFile{});
  EXPECT_THAT(ui.store.message().text, testing::HasSubstr("cannot be saved"));

  server.end();
  ui.key(Key::z, {.ctrl = true});  // undo works without the server
  ui.click("layers/1.0");
  ui.key(Key::x);
  settle();
  EXPECT_THAT(ui.store.message().text, testing::HasSubstr("the connection to Python was lost"));
  EXPECT_TRUE(ui.store.message().is_error);
  EXPECT_EQ(ui.store.model().n_heads, 4u);
  EXPECT_TRUE(ui.has("layers/2.3"));
}

}  // namespace
}  // namespace walk
