#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "app/screen/paths.hpp"
#include "app/session/remembered.hpp"

namespace {

namespace fs = std::filesystem;
using namespace app::platform;

class Memories : public testing::Test {
 protected:
  Memories() {
    fs::remove_all(directory);
    fs::create_directories(directory);
  }
  ~Memories() override { fs::remove_all(directory); }
  const fs::path directory = fs::temp_directory_path() / ("attnscope-memory-" + std::to_string(::getpid()));
};

TEST_F(Memories, ComeBackAsTheyWereWritten) {
  const Memory memory{{{"theme", "light"}, {"note", "a=b"}}, {"/a/ü b.json", "/c.json"}};
  EXPECT_EQ(write_memory(directory / "not yet there", memory), "");
  EXPECT_EQ(read_memory(directory / "not yet there"), memory);
}

TEST_F(Memories, OfTwoWindowsAreKeptTogether) {
  const Memory began{{{"theme", "dark"}, {"tour", "new"}}, {"/a", "/b", "/c"}};
  Memory other = began, own = began;
  other.settings["lesson 000"] = "3";
  other.settings["tour"] = "known";
  other.recent = {"/s.json", "/a", "/b", "/c"};
  own.settings["theme"] = "light";
  own.recent = {"/c", "/new", "/a", "/b"};
  const Memory both = merged(began, own, merged(began, other, began));
  EXPECT_EQ(both.settings,
            (std::map<std::string, std::string>{{"theme", "light"}, {"tour", "known"}, {"lesson 000", "3"}}));
  EXPECT_EQ(both.recent, (std::vector<fs::path>{"/c", "/new", "/s.json", "/a", "/b"}));
  EXPECT_EQ(merged(began, began, other), other) << "who has done nothing changes nothing";
  EXPECT_EQ(merged({}, own, {}), own);
}

TEST_F(Memories, LeaveNoUnfinishedFileBehind) {
  ASSERT_EQ(write_memory(directory, {}), "");
  for (const auto& entry : fs::directory_iterator(directory)) EXPECT_NE(entry.path().extension(), ".part");
}

TEST_F(Memories, ThatCannotBeReadAreEmpty) {
  EXPECT_EQ(read_memory(directory / "missing"), Memory{});
}

TEST_F(Memories, ThatAreNoFilesOrHaveNoEndAreEmpty) {
  ASSERT_EQ(::mkfifo((directory / "settings").c_str(), 0600), 0);
  fs::create_symlink("/dev/zero", directory / "recent");
  EXPECT_EQ(read_memory(directory), Memory{});
  fs::remove(directory / "settings");
  std::ofstream(directory / "settings") << std::string(2 << 20, '=');
  EXPECT_EQ(read_memory(directory), Memory{});
}

TEST_F(Memories, OfLinesWithoutAKeyAreLeftOut) {
  std::ofstream(directory / "settings") << "nonsense\n\nscale=2\n";
  EXPECT_EQ(read_memory(directory).settings, (std::map<std::string, std::string>{{"scale", "2"}}));
}

TEST_F(Memories, ThatCannotBeWrittenSaySoAndNameThePlace) {
  std::ofstream(directory / "file") << "in the way";
  const std::string complaint = write_memory(directory / "file", {});
  EXPECT_NE(complaint.find((directory / "file").string()), std::string::npos) << complaint;
}

TEST(RecentFiles, HaveTheNewestFirstAndEachOnce) {
  EXPECT_EQ(app::with_recent({"a", "b", "c"}, "b"), (std::vector<fs::path>{"b", "a", "c"}));
}

TEST(RecentFiles, AreTenAtMost) {
  std::vector<fs::path> recent;
  for (int i = 0; i < 12; ++i) recent = app::with_recent(recent, std::to_string(i));
  ASSERT_EQ(recent.size(), 10u);
  EXPECT_EQ(recent.front(), "11");
  EXPECT_EQ(recent.back(), "2");
}

}  // namespace
