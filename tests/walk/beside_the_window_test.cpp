// What the window's thread leaves to others, so that no frame waits for it.
#include <gtest/gtest.h>

#include "app/theme/imgui_compat.hpp"
#include "tests/support/imgui_input.hpp"
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
  /// Frames until nothing is under way.
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
  EXPECT_FALSE(ui.store.live().trace().heads[0].scores.is_made());
  EXPECT_FALSE(ui.store.live().trace().mask.is_made());
  rest();
  EXPECT_TRUE(ui.store.live().trace().heads[0].scores.is_made());
}

TEST_F(LargeModel, IsReplacedByAKeptOneWhoseStagesAreMadeBesideTheWindowToo) {
  ui.store.dispatch(app::KeepReference{});
  ui.store.dispatch(app::ApplyEdit{core::editing::SetCell{{}, 0, 0, 0.5}});
  rest();
  put_space(true);
  while (!ui.store.comparing().kept()) ui.store.update();
  const auto trace = ui.store.comparing().kept()->lease().trace;
  EXPECT_FALSE(trace->heads[0].scores.is_made());
  ui.loop.frame();  // the first one that may show it
  EXPECT_FALSE(trace->heads[0].scores.is_made());
  EXPECT_TRUE(ui.loop.is_working());
  rest();
  EXPECT_TRUE(trace->heads[0].scores.is_made());
  put_space(false);
  EXPECT_EQ(ui.store.comparing().kept(), nullptr);
  rest();
}

}  // namespace
}  // namespace walk
