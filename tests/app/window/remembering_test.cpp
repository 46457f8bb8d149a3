#include "app/window/loop.hpp"

#include <gtest/gtest.h>

#include <optional>

#include "tests/support/temporary_directory.hpp"

namespace app {
namespace {

using platform::Memory;
using platform::read_memory;

struct Remembers : testing::Test {
  const support::TemporaryDirectory folder;
  const Memory began{{{"theme", "dark"}}, {}};
  Jobs jobs;
  std::optional<Remembering> remembering{std::in_place, jobs, folder.path(), began};

  void follow(const Memory& now) {
    remembering->follow(now);
    jobs.finish();
  }
};

TEST_F(Remembers, AtOnceWhatHasChanged) {
  follow(began);
  EXPECT_TRUE(folder.names().empty()) << "nothing is new";
  Memory now = began;
  now.settings["lesson 000"] = "3 0,1";
  now.recent = {"/a.json"};
  follow(now);
  EXPECT_EQ(read_memory(folder.path()), now);  // and the program may be killed now
}

TEST_F(Remembers, WhatIsNewWhenItEnds) {
  Memory now = began;
  for (const char* width : {"300", "310", "320"}) {  // a border that is dragged, from frame to frame
    now.settings["left_width"] = width;
    remembering->follow(now);
  }
  remembering->finish(now);
  EXPECT_EQ(read_memory(folder.path()), now);
}

TEST_F(Remembers, WhatAnotherWindowHasWrittenMeanwhile) {
  Memory now = began;
  now.settings["lesson 000"] = "3 0,1";
  follow(now);
  Memory others = now;
  others.settings["theme"] = "light";
  others.recent = {"/theirs.json"};
  ASSERT_EQ(platform::write_memory(folder.path(), others), "");
  now.settings["lesson 004"] = "1 0";
  follow(now);
  others.settings["lesson 004"] = "1 0";
  EXPECT_EQ(read_memory(folder.path()), others);
}

TEST_F(Remembers, AndSaysOnceWhereItCannot) {
  support::put_bytes(folder / "a file", "");
  remembering.emplace(jobs, folder / "a file", began);
  int n_said = 0;
  jobs.fail_by([&](const Failure& failure) {
    ++n_said;
    EXPECT_EQ(failure.words,
              (folder / "a file").string() + ": settings and recent files cannot be written there");
  });
  Memory now = began;
  for (const char* theme : {"light", "dark", "light"}) {
    now.settings["theme"] = theme;
    follow(now);
  }
  EXPECT_EQ(n_said, 1);
}

}  // namespace
}  // namespace app
