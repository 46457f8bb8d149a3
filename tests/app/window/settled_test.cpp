// The loop draws until nothing changes any more, and then sleeps.
#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

#include "app/ui/actions/actions.hpp"
#include "app/window/loop.hpp"
#include "tests/support/bare_screen.hpp"
#include "tests/support/ui_input.hpp"

namespace {

using app::Key;

/// Screen whose events are a script, one for each wait.
class ScriptedScreen : public support::BareScreen {
 public:
  using BareScreen::BareScreen;

  bool wait(double seconds) override {
    waited = seconds;
    return !script.empty();
  }
  std::vector<app::KeyPress> take_keys() override {
    if (script.empty() || !script.front().key) return {};
    return {*script.front().key};
  }
  void begin_frame(const std::function<void(ImGuiIO&)>&) override {
    BareScreen::begin_frame([this](ImGuiIO& io) {
      if (script.empty()) return;
      support::put(script.front(), io);
      script.pop_front();
    });
  }
  bool end_frame(app::Rgb background, const app::render::Damage::TextureVersion& version) override {
    ++n_frames;
    return has_changed = BareScreen::end_frame(background, version);
  }

  std::deque<support::InputFrame> script;
  double waited = 0;  ///< in the last wait, in seconds
  int n_frames = 0;
  bool has_changed = false;  ///< in the last frame
};

struct SettledWindow : testing::Test {
  ScriptedScreen screen{{1280, 800}};
  app::Store store;
  support::NoPainter painter;
  app::Loop loop{screen, painter, store};

  void SetUp() override {
    screen.has_fonts = true;
    store.dispatch(app::set<&app::Settings::reduce_motion>(true));
    sleep();
  }
  /// Plays the script, and frames until the loop sleeps.
  void sleep() {
    constexpr double longer_than_an_animation = 0.2;
    for (int k = 0; k < 1000; ++k) {
      loop.step();
      if (screen.script.empty() && screen.waited > longer_than_an_animation) return;
    }
    FAIL() << "it never sleeps";
  }
  void play(const support::Gesture& gesture) {
    for (const support::InputFrame& input : gesture) {
      screen.script.push_back(input);
      loop.step();
    }
    sleep();
  }
  ImVec2 center(const std::string& name) const {
    const auto found = loop.landmarks().find(name);
    if (!found) throw std::runtime_error("nothing on the screen is called " + name);
    return found->center();
  }
  void click(const std::string& name) { play(support::click(center(name))); }
  /// Draws more frames, which must look like the one before the loop slept.
  void expect_settled(const std::string& after) {
    for (int k = 0; k < 6; ++k) {
      loop.frame();
      EXPECT_FALSE(screen.has_changed) << after << ": frame " << k;
    }
  }
};

TEST_F(SettledWindow, ShowsTheFirstCardOfTheTour) {
  click("menu/Help");
  click("menu/help/tour");
  EXPECT_TRUE(loop.landmarks().find("tour/card"));
  expect_settled("tour");
}

TEST_F(SettledWindow, ShowsTheMenuOfANumberOfEdit) {
  play(support::right_click(center("edit/cell/1/1")));
  EXPECT_TRUE(loop.landmarks().find("edit/cell_menu/zero"));
  expect_settled("menu of a number");
}

TEST_F(SettledWindow, ShowsTooltipsInTheirSize) {
  store.dispatch(app::LoadPreset{"modern-rotary"});
  play({support::InputFrame{}});
  click("strip/positions/rotated_queries");
  ASSERT_TRUE(store.view().look.large);
  expect_settled("arrows");
  play(support::press({Key::escape}));
  for (const char* map : {"strip/weights", "strip/queries", "strip/title/weights", "edit/cell/0/0"}) {
    play(support::move_to(center(map)));
    expect_settled(map);
  }
}

TEST_F(SettledWindow, IsSettledAfterEveryMenuAndDialog) {
  for (const app::TopLevelMenu& menu : app::top_level_menus()) {
    click(std::string("menu/") + menu.menu);
    expect_settled(menu.menu);
    play(support::press({Key::escape}));
    expect_settled(std::string(menu.menu) + " closed");
  }
  for (const app::Dialog dialog : {app::Dialog::export_files, app::Dialog::keys, app::Dialog::about,
                                   app::Dialog::glossary, app::Dialog::draw_model}) {
    store.dispatch(app::ShowDialog{dialog});
    play({support::InputFrame{}});
    expect_settled("dialog " + std::to_string(static_cast<int>(dialog)));
    store.dispatch(app::ShowDialog{app::Dialog::none});
    play({support::InputFrame{}});
  }
}

TEST_F(SettledWindow, DrawsNothingWhileNothingHappens) {
  const int before = screen.n_frames;
  for (int k = 0; k < 20; ++k) loop.step();  // also while it looks for work left by other windows
  EXPECT_EQ(screen.n_frames, before);
}

TEST_F(SettledWindow, DrawsOneFrameForEachBlinkOfTheTextCursor) {
  click("model/tokens");
  ASSERT_TRUE(ImGui::GetIO().WantTextInput);
  const int before = screen.n_frames;
  for (int k = 0; k < 10; ++k) loop.step();
  EXPECT_EQ(screen.n_frames, before + 10);
  EXPECT_GE(screen.waited, 0.2);
}

}  // namespace
