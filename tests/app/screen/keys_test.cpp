#include "app/screen/window.hpp"

#include <gtest/gtest.h>

#include "app/theme/imgui_compat.hpp"
#include "tests/support/imgui_input.hpp"

namespace {

using app::Key;
using app::platform::key_of_character;

TEST(Keys, AreTheCharactersThatCommandsAreBoundTo) {
  EXPECT_EQ(key_of_character('a'), Key::a);
  EXPECT_EQ(key_of_character('Z'), Key::z);
  EXPECT_EQ(key_of_character('9'), Key::digit_9);
  EXPECT_EQ(key_of_character('['), Key::bracket_left);
  EXPECT_EQ(key_of_character('?'), Key::question);
  for (const unsigned other : {0u, 0x20acu, 0x40u}) EXPECT_EQ(key_of_character(other), std::nullopt);
}

#if IMGUI_VERSION_NUM < 18700

/// A keyboard of which ImGui sees only how it stands when a frame begins.
class ShortPress : public testing::Test {
 protected:
  ShortPress() {
    ImGui::CreateContext();
    io().IniFilename = nullptr;
    io().DisplaySize = {100, 100};
    support::name_keys(io());
    unsigned char* pixels = nullptr;
    int width = 0, height = 0;
    io().Fonts->GetTexDataAsAlpha8(&pixels, &width, &height);
  }
  ~ShortPress() override { ImGui::DestroyContext(); }

  static ImGuiIO& io() { return ImGui::GetIO(); }
  void goes(ImGuiKey key, bool down) {
    if (down) presses.went_down(key);
    io().KeysDown[key] = down;
  }
  /// Whether the key is seen to go down in the next frame.
  bool pressed_in_next_frame(ImGuiKey key) {
    presses.put(io());
    ImGui::NewFrame();
    const bool pressed = app::platform::key_pressed(key, false);
    ImGui::EndFrame();
    return pressed;
  }

  app::platform::ShortPresses presses;
};

TEST_F(ShortPress, BetweenTwoFramesIsSeenOnce) {
  goes(ImGuiKey_Tab, true);
  goes(ImGuiKey_Tab, false);
  EXPECT_TRUE(pressed_in_next_frame(ImGuiKey_Tab));
  EXPECT_FALSE(pressed_in_next_frame(ImGuiKey_Tab));
  EXPECT_FALSE(io().KeysDown[ImGuiKey_Tab]);
}

TEST_F(ShortPress, LeavesAHeldKeyDown) {
  goes(ImGuiKey_Enter, true);
  EXPECT_TRUE(pressed_in_next_frame(ImGuiKey_Enter));
  EXPECT_FALSE(pressed_in_next_frame(ImGuiKey_Enter));
  EXPECT_TRUE(io().KeysDown[ImGuiKey_Enter]);
  goes(ImGuiKey_Enter, false);
  EXPECT_FALSE(pressed_in_next_frame(ImGuiKey_Enter));
  EXPECT_FALSE(io().KeysDown[ImGuiKey_Enter]);
}

TEST_F(ShortPress, FollowedByALongOneIsNotCutShort) {
  goes(ImGuiKey_LeftArrow, true);
  goes(ImGuiKey_LeftArrow, false);
  EXPECT_TRUE(pressed_in_next_frame(ImGuiKey_LeftArrow));
  goes(ImGuiKey_LeftArrow, true);
  pressed_in_next_frame(ImGuiKey_LeftArrow);
  EXPECT_TRUE(io().KeysDown[ImGuiKey_LeftArrow]);
}

#endif

}  // namespace
