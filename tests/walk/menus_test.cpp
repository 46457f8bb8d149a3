// Every line of every menu.
#include <gmock/gmock.h>

#include <set>

#include "tests/walk/walk.hpp"

namespace walk {
namespace {

using Names = std::set<std::string>;
using Path = std::vector<std::string>;

struct Menus : Program {
  Names lines() const {
    Names names;
    for (const auto& [name, rect] : ui.landmarks().all())
      if (name.starts_with("menu/") && name != "menu/title") names.insert(name);
    return names;
  }
  Menus() { ui.sharp = false; }
  void close_everything() {
    ui.store.dispatch(app::ChangeView{[](app::View& view) {
      view.selection.presenting = {};
      view.selection.tour.reset();
    }});
    ui.run(2);
    ui.move_to("region/status");  // over a line that opens a menu, that menu would open again
    for (int i = 0; i < 4; ++i) ui.key(Key::escape);
    ui.store.dispatch(app::CancelQuestion{});
    ui.run(3);
  }
  /// Clicks along the path; gives the lines that its last click has opened.
  Names walk(const Path& path) {
    close_everything();
    Names before;
    for (const std::string& name : path) {
      before = lines();
      ui.click(name);
    }
    Names opened;
    for (const std::string& name : lines())
      if (!before.contains(name)) opened.insert(name);
    return opened;
  }
  /// Walks the whole tree below a path; counts the lines that open nothing.
  std::size_t walk_all(const Path& path, std::vector<std::string>& clicked) {
    const Names opened = walk(path);
    clicked.push_back(path.back());
    EXPECT_FALSE(core::attention::check(ui.model()).has_value()) << path.back();
    if (opened.empty()) return 1;
    std::size_t leaves = 0;
    for (const std::string& name : opened) {
      Path deeper = path;
      deeper.push_back(name);
      leaves += walk_all(deeper, clicked);
    }
    return leaves;
  }
};

TEST_F(Menus, CanBeClickedLineByLine) {
  std::vector<std::string> clicked;
  std::size_t leaves = 0;
  for (const std::string& name : lines()) leaves += walk_all({name}, clicked);
  for (const char* line :
       {"menu/file/open", "menu/new/000-causal", "menu/scale/200", "menu/shown/weights", "menu/theme/light",
        "menu/edit/undo", "menu/edit/add_token", "menu/help/keys", "menu/help/about", "menu/file/quit"})
    EXPECT_THAT(clicked, testing::Contains(line));
  EXPECT_GT(leaves, 35u);
}

TEST_F(Menus, DoWhatTheySay) {
  walk({"menu/Edit", "menu/edit/add_token"});
  EXPECT_EQ(ui.model().n_tokens(), 7u);
  walk({"menu/Edit", "menu/edit/undo"});
  EXPECT_EQ(ui.model().n_tokens(), 6u);
  walk({"menu/View", "menu/theme/light"});
  EXPECT_FALSE(ui.store.view().settings.dark);
  walk({"menu/View", "menu/View/Shown stages", "menu/shown/scores"});
  EXPECT_FALSE(ui.has("strip/scores"));
  walk({"menu/View", "menu/View/Scale", "menu/scale/150"});
  EXPECT_EQ(ui.store.view().settings.scale, 1.5f);
  walk({"menu/File", "menu/File/New", "menu/new/003-causal-class"});
  EXPECT_EQ(ui.store.document().preset, "003-causal-class");
  walk({"menu/File", "menu/file/quit"});
  EXPECT_TRUE(ui.store.wants_to_quit());
}

TEST_F(Menus, CloseWithEscapeInTheMomentInWhichAnotherOpens) {
  ui.click("menu/File");
  ASSERT_TRUE(ui.has("menu/file/open"));
  support::InputFrame over, pressed, released;
  over.mouse = ui.centre("menu/Edit");
  pressed.key = app::KeyPress{Key::escape};
  released.released = Key::escape;
  ui.play({over, pressed, released});
  ui.move_to("region/status");
  ui.run(3);
  EXPECT_FALSE(ui.has("menu/file/open"));
}

TEST_F(Menus, CloseWithEscape) {
  ui.click("menu/File");
  ASSERT_TRUE(ui.has("menu/file/open"));
  ui.key(Key::escape);
  EXPECT_FALSE(ui.has("menu/file/open"));
}

}  // namespace
}  // namespace walk
