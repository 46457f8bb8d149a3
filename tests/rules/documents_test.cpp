// What the documents say is true of the project as it is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>

#include "core/attention/stages.hpp"
#include "core/formats/sessions/session.hpp"
#include "tests/rules/rooms.hpp"

namespace tests::rules {
namespace {

using testing::HasSubstr;

namespace fs = std::filesystem;

std::string document(const std::string& name) {
  std::ifstream file(fs::path(PROJECT_ROOT) / name);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Readme, ShowsASessionThatCanBeComputed) {
  const std::string readme = document("README.md");
  const std::size_t begin = readme.find("```json\n"), end = readme.find("```", begin + 8);
  ASSERT_NE(end, readme.npos);
  const auto session = core::formats::parse_session(readme.substr(begin + 8, end - begin - 8), "README.md");
  EXPECT_EQ(session.model.n_heads, 2u);
  EXPECT_FALSE(core::attention::check(session.model).has_value());
}

TEST(Readme, NamesEveryStage) {
  const std::string readme = document("README.md");
  for (const auto& stage : core::attention::stages())
    EXPECT_THAT(readme, HasSubstr("`" + std::string(stage.name) + "`"));
}

TEST(Readme, LinksToFilesThatExist) {
  const std::regex link(R"(\]\(([^):#]+)\))");
  std::size_t links = 0;
  for (const char* name : {"README.md", "CONTRIBUTING.md", "CHANGELOG.md"}) {
    const std::string text = document(name);
    for (std::sregex_iterator it(text.begin(), text.end(), link), end; it != end; ++it, ++links)
      EXPECT_TRUE(fs::exists(fs::path(PROJECT_ROOT) / (*it)[1].str())) << name << " links to " << (*it)[1];
  }
  EXPECT_GT(links, 0u);
}

/// The folders of the map, as paths: each is two blanks further in than the one it is in.
std::vector<std::string> folders_of_the_map() {
  std::vector<std::string> folders, path;
  std::istringstream lines(document("CONTRIBUTING.md"));
  bool in_map = false;
  const std::regex folder("    ( *)([a-z_]+)/.*");
  std::smatch match;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("## ")) in_map = line == "## The map";
    if (!in_map || !std::regex_match(line, match, folder)) continue;
    path.resize(std::min(path.size(), static_cast<std::size_t>(match[1].length()) / 2));
    path.push_back(match[2]);
    std::string whole;
    for (const std::string& name : path) whole += (whole.empty() ? "" : "/") + name;
    folders.push_back(whole);
  }
  return folders;
}

TEST(Contributing, HasEveryRoomOnItsMap) {
  const auto folders = folders_of_the_map();
  for (const Room& room : rooms()) EXPECT_THAT(folders, testing::Contains(std::string(room.folder)));
}

TEST(Contributing, HasNoFolderOnItsMapThatIsNotThere) {
  for (const std::string& folder : folders_of_the_map())
    EXPECT_TRUE(fs::is_directory(fs::path(PROJECT_ROOT) / folder)) << folder;
}

}  // namespace
}  // namespace tests::rules
