// Parts of the window that need no display: remembered state and keys.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "app/screen/keys.hpp"
#include "app/screen/paths.hpp"
#include "app/screen/window.hpp"
#include "app/session/remembered.hpp"
#include "app/theme/imgui_compat.hpp"
#include "tests/support/imgui_input.hpp"
#include "tests/support/temporary_directory.hpp"

namespace {

namespace fs = std::filesystem;
using namespace app::platform;

struct Memories : testing::Test {
  const support::TemporaryDirectory directory;
};

TEST_F(Memories, ComeBackAsTheyWereWritten) {
  const UserState memory{{{"theme", "light"}, {"note", "a=b"}}, {"/a/ü b.json", "/c.json"}};
  EXPECT_EQ(write_user_state(directory / "not yet there", memory), "");
  EXPECT_EQ(read_user_state(directory / "not yet there"), memory);
  EXPECT_EQ(directory.names(),
            (std::set<std::string>{"not yet there", "not yet there/recent", "not yet there/settings"}));
  EXPECT_EQ(read_user_state(directory / "missing"), UserState{});
}

TEST_F(Memories, OfTwoWindowsAreKeptTogether) {
  const UserState began{{{"theme", "dark"}, {"tour", "new"}}, {"/a", "/b", "/c"}};
  UserState other = began, own = began;
  other.settings["lesson 000"] = "3";
  other.settings["tour"] = "known";
  other.recent = {"/s.json", "/a", "/b", "/c"};
  own.settings["theme"] = "light";
  own.recent = {"/c", "/new", "/a", "/b"};
  const UserState both = merge_user_state(began, own, merge_user_state(began, other, began));
  EXPECT_EQ(both.settings,
            (std::map<std::string, std::string>{{"theme", "light"}, {"tour", "known"}, {"lesson 000", "3"}}));
  EXPECT_EQ(both.recent, (std::vector<fs::path>{"/c", "/new", "/s.json", "/a", "/b"}));
  EXPECT_EQ(merge_user_state(began, began, other), other) << "who has done nothing changes nothing";
  EXPECT_EQ(merge_user_state({}, own, {}), own);
}

TEST_F(Memories, ThatAreNoFilesOrHaveNoEndAreEmpty) {
  ASSERT_EQ(::mkfifo((directory / "settings").c_str(), 0600), 0);
  fs::create_symlink("/dev/zero", directory / "recent");
  EXPECT_EQ(read_user_state(directory.path()), UserState{});
  fs::remove(directory / "settings");
  std::ofstream(directory / "settings") << std::string(2 << 20, '=');
  EXPECT_EQ(read_user_state(directory.path()), UserState{});
}

TEST_F(Memories, OfLinesWithoutAKeyAreLeftOut) {
  std::ofstream(directory / "settings") << "nonsense\n\nscale=2\n";
  EXPECT_EQ(read_user_state(directory.path()).settings, (std::map<std::string, std::string>{{"scale", "2"}}));
}

TEST_F(Memories, ThatCannotBeWrittenSaySoAndNameThePlace) {
  std::ofstream(directory / "file") << "in the way";
  const std::string complaint = write_user_state(directory / "file", {});
  EXPECT_NE(complaint.find((directory / "file").string()), std::string::npos) << complaint;
}

TEST(RecentFiles, AreTenAtMostTheNewestFirstAndEachOnce) {
  EXPECT_EQ(app::with_recent({"a", "b", "c"}, "b"), (std::vector<fs::path>{"b", "a", "c"}));
  std::vector<fs::path> recent;
  for (int i = 0; i < 12; ++i) recent = app::with_recent(recent, std::to_string(i));
  ASSERT_EQ(recent.size(), 10u);
  EXPECT_EQ(recent.front(), "11");
  EXPECT_EQ(recent.back(), "2");
}

using app::Key;
using app::platform::key_of_character;

TEST(Keys, AreLettersInEitherCaseDigitsAndTheSignsOfCommands) {
  for (const auto& [character, key] : {std::pair<unsigned, std::optional<Key>>{'a', Key::a},
                                       {'Z', Key::z},
                                       {'0', Key::digit_0},
                                       {'9', Key::digit_9},
                                       {'[', Key::bracket_left},
                                       {'?', Key::question},
                                       {0, {}},
                                       {0x20ac, {}},
                                       {'@', {}}})
    EXPECT_EQ(key_of_character(character), key) << character;
}

#if IMGUI_VERSION_NUM < 18700

/// Keyboard whose state ImGui sees only at the start of a frame.
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
    if (down) presses.press(key);
    io().KeysDown[key] = down;
  }
  /// Returns whether the next frame reports the key as pressed.
  bool pressed_in_next_frame(ImGuiKey key) {
    presses.apply(io());
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
