// What the documents say is true of the project as it is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>

#include "core/attention/stages.hpp"
#include "core/formats/sessions/session.hpp"

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

TEST(Contributing, HasEveryRoomOnItsMap) {
  const std::string text = document("CONTRIBUTING.md");
  for (const char* floor : {"core", "app"}) {
    for (const auto& entry : fs::directory_iterator(fs::path(PROJECT_ROOT) / floor)) {
      const std::string room = entry.path().filename().string();
      if (entry.is_directory()) {
        EXPECT_THAT(text, HasSubstr("      " + room + "/ ")) << "in " << floor;
      }
    }
  }
}

}  // namespace
}  // namespace tests::rules
