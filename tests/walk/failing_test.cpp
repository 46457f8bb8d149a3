// A frame that an exception breaks off.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "app/window/shell.hpp"
#include "tests/walk/walk.hpp"

namespace walk {
namespace {

struct FailingView : testing::Test {
  bool fails = false;
  Walk ui{1600, 1000, app::LiveTrace::frame_ms, [this](const app::Frame& frame) {
            app::draw_window(frame);
            if (!fails) return;
            ImGui::Begin("half a window");
            ImGui::BeginGroup();
            ImGui::PushID("half a name");
            ImGui::PushStyleVar(ImGuiStyleVar_Alpha, 0.5f);
            throw std::out_of_range("no row 7");
          }};
  void fail() {
    fails = true;
    ui.run(3);
  }
  bool has(const char* name) const { return ui.landmarks().find(name).has_value(); }
};

TEST_F(FailingView, SaysWhyAndComesBackWhenItCanBeDrawn) {
  fail();
  EXPECT_TRUE(ui.store.message().is_error);
  EXPECT_THAT(ui.store.message().text, testing::HasSubstr("no row 7"));
  EXPECT_TRUE(has("plain window"));
  EXPECT_FALSE(has("region/stages"));
  fails = false;
  ui.key(Key::escape);
  EXPECT_FALSE(has("plain window"));
  EXPECT_TRUE(has("region/stages"));
  const bool causal = ui.model().mask.causal;
  ui.click("model/causal");
  EXPECT_NE(ui.model().mask.causal, causal);
}

TEST_F(FailingView, LeavesTheKeysTheMenusAndTheQuestions) {
  const bool causal = ui.model().mask.causal;
  ui.click("model/causal");
  fail();
  ui.key(Key::z, {.ctrl = true});
  EXPECT_EQ(ui.model().mask.causal, causal);
  ui.key(Key::z, {.ctrl = true, .shift = true});
  EXPECT_NE(ui.model().mask.causal, causal);
  ui.run(3);
  ui.click("menu/File");
  ui.click("menu/file/quit");
  ui.run(2);
  EXPECT_EQ(ui.store.view().forms.dialog, app::Dialog::unsaved_work);
  ui.click("dialog/discard");
  EXPECT_TRUE(ui.store.wants_to_quit());
}

}  // namespace
}  // namespace walk
