// The rules on the project's own files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>
#include <map>
#include <set>

#include "tests/rules/includes_rule.hpp"
#include "tests/rules/listing_rule.hpp"
#include "tests/rules/rooms.hpp"
#include "tests/rules/size_rule.hpp"
#include "tests/rules/state_rule.hpp"

namespace tests::rules {
namespace {

using testing::IsEmpty;

std::vector<File> code(const std::vector<std::string>& folders) {
  return read_files(PROJECT_ROOT, folders, {".hpp", ".cpp"});
}

TEST(Project, IncludesPointDown) {
  const auto files = code({"core", "app"});
  ASSERT_FALSE(files.empty());
  EXPECT_THAT(forbidden_includes(files), IsEmpty());
}

TEST(Project, HasARuleForEveryRoomAndNoRoomWithoutFiles) {
  std::set<std::string> folders, ruled;
  for (const File& file : code({"core", "app"})) folders.insert(file.path.substr(0, file.path.rfind('/')));
  for (const Room& room : rooms()) ruled.insert(std::string(room.folder));
  EXPECT_EQ(folders, ruled);
}

TEST(Project, HasNoRoomThatUsesOneFurtherUp) {
  std::set<std::string_view> below;
  for (const Room& room : rooms()) {
    for (const std::string_view used : room.uses)
      EXPECT_TRUE(below.contains(used)) << room.folder << " uses " << used;
    EXPECT_TRUE(below.insert(room.folder).second) << room.folder << " has two rules";
  }
}

TEST(Project, HasNoCrowdedRoom) {
  std::map<std::string, std::set<std::string>> units;
  for (const File& file : code({"core", "app"})) {
    const std::size_t end = file.path.rfind('/');
    units[file.path.substr(0, end)].insert(file.path.substr(end, file.path.rfind('.') - end));
  }
  for (const auto& [room, inside] : units) EXPECT_LE(inside.size(), 25u) << room;
}

TEST(Project, HasNoTypeThatOffersTooMuch) {
  std::size_t n_types = 0;
  for (const File& file : code({"core", "app"})) {
    for (const TypeSize& type : type_sizes(file.text)) {
      ++n_types;
      EXPECT_LE(type.members, 15u) << file.path << ": " << type.name;
      EXPECT_LE(type.functions, 25u) << file.path << ": " << type.name;
    }
  }
  EXPECT_GT(n_types, 300u);
}

TEST(Project, HasNothingButMainInTheProgramsRoot) {
  for (const File& file : code({"app"})) {
    const bool is_in_root = file.path.find('/') == file.path.rfind('/');
    EXPECT_TRUE(!is_in_root || file.path == "app/main.cpp") << file.path;
  }
}

TEST(Project, HasSlowLibrariesInOneTranslationUnitEach) {
  const auto files = code({"core", "app", "tests"});
  EXPECT_THAT(misplaced_library(files, "nlohmann/json.hpp"), IsEmpty());
  EXPECT_THAT(misplaced_library(files, "CLI/"), IsEmpty());
}

TEST(Project, KeepsNoStateInStatics) {
  std::vector<std::string> found;
  for (const File& file : code({"core", "app"}))
    for (const std::size_t line : mutable_statics(file.text))
      found.push_back(file.path + ":" + std::to_string(line));
  EXPECT_THAT(found, IsEmpty());
}

TEST(Project, AsksInOnePlaceWhatReleasesOfImGuiDoDifferently) {
  for (const File& file : code({"app"})) {
    if (file.path.starts_with("app/theme/imgui_compat.")) continue;
    for (const std::string word : {"->FontSize", "->Ascent", "ImGui::PushFont(", "ImGui::SetCursorScreenPos(",
                                   "ImGui::SetKeyboardFocusHere("})
      EXPECT_EQ(file.text.find(word), file.text.npos) << file.path << ": " << word;
  }
}

TEST(Project, UsesNoViewsThatClang14CannotCompile) {
  for (const File& file : code({"core", "app", "tests/fuzz"}))
    EXPECT_EQ(file.text.find("#include <ranges>"), file.text.npos) << file.path;
}

TEST(Project, CompilesEverySource) {
  const auto sources = read_files(PROJECT_ROOT, {"core", "app", "tests"}, {".cpp"});
  const auto lists = read_files(PROJECT_ROOT, {"core", "app", "tests"}, {"CMakeLists.txt"});
  EXPECT_THAT(unlisted_sources(sources, lists), IsEmpty());
}

TEST(Project, KeepsFilesShort) {
  const auto files = code({"core", "app"});
  for (const std::string& file : longer_than(files, 300)) std::cout << "worth splitting: " << file << "\n";
  EXPECT_THAT(longer_than(files, 400), IsEmpty());
}

}  // namespace
}  // namespace tests::rules
