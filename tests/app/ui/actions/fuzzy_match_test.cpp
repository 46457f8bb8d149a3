#include "app/ui/actions/finding.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using app::fuzzy_match;
using testing::ElementsAre;
using testing::IsEmpty;

int score(const char* query, const char* text) {
  const auto match = fuzzy_match(query, text);
  return match ? match->score : -1;
}

TEST(FuzzyMatch, FindsLettersInTheirOrderOnly) {
  EXPECT_TRUE(fuzzy_match("sva", "Save as"));
  EXPECT_FALSE(fuzzy_match("vs", "Save")) << "s stands before v";
  EXPECT_FALSE(fuzzy_match("saves", "Save"));
  EXPECT_FALSE(fuzzy_match("a", ""));
}

TEST(FuzzyMatch, SaysWhichBytesItFound) {
  EXPECT_THAT(fuzzy_match("shst", "Shown stages")->lit, ElementsAre(0, 1, 6, 7));
  EXPECT_THAT(fuzzy_match("in", "Zoom in")->lit, ElementsAre(5, 6));
  EXPECT_THAT(fuzzy_match("op", "Zoom, one part")->lit, ElementsAre(6, 10)) << "two starts of words";
}

TEST(FuzzyMatch, TakesCapitalsForSmallLetters) {
  EXPECT_EQ(score("SAVE", "save"), score("save", "SAVE"));
  EXPECT_TRUE(fuzzy_match("save", "SAVE"));
}

TEST(FuzzyMatch, ScoresStartsOfWordsHigher) {
  EXPECT_GT(score("co", "Compare"), score("co", "Scores"));
  EXPECT_GT(score("s", "Row sums"), score("s", "Tokens"));
  EXPECT_GT(score("rs", "Row sums"), score("rs", "Large stage of heads, first"));
}

TEST(FuzzyMatch, ScoresLettersSideBySideHigher) {
  EXPECT_GT(score("st", "Stages"), score("st", "Show a mistake: mask transposed"));
  EXPECT_GT(score("out", "Zoom out"), score("out", "Only unpinned tokens"));
  EXPECT_GT(score("ken", "Tokens"), score("ken", "Make open"));
}

TEST(FuzzyMatch, LooksForWordsOfTheQueryAnywhere) {
  const auto match = fuzzy_match("150 scale", "Scale: 150 %");
  ASSERT_TRUE(match);
  EXPECT_THAT(match->lit, ElementsAre(0, 1, 2, 3, 4, 7, 8, 9));
  EXPECT_FALSE(fuzzy_match("150 scale", "Scale: 125 %"));
}

TEST(FuzzyMatch, FindsNothingEverywhere) {
  EXPECT_EQ(fuzzy_match("", "Save")->score, 0);
  EXPECT_EQ(fuzzy_match("  ", "Save")->score, 0);
  EXPECT_THAT(fuzzy_match("", "Save")->lit, IsEmpty());
}

TEST(FuzzyMatch, KnowsLettersOfOtherAlphabets) {
  EXPECT_TRUE(fuzzy_match("√d", "scale by 1/√d"));
  EXPECT_FALSE(fuzzy_match("é", "e"));
}

std::vector<app::Action> named(const char* menu, std::initializer_list<const char*> titles) {
  std::vector<app::Action> all;
  for (const char* title : titles) {
    app::Action action;
    action.id = action.title = title;
    action.menu = menu;
    action.command = [](const app::Situation&) { return std::vector<app::Command>(); };
    all.push_back(action);
  }
  return all;
}

std::vector<std::string> names(const std::vector<app::FoundAction>& found) {
  std::vector<std::string> list;
  for (const auto& row : found) list.push_back(row.action->title);
  return list;
}

TEST(FoundActions, HaveTheBestFirstAndElseTheOrderOfTheTable) {
  const auto all = named("View", {"tops", "xst", "Step", "other", "Stop"});
  EXPECT_THAT(names(app::found_actions(all, "st")), ElementsAre("Step", "Stop", "xst"));
  EXPECT_THAT(names(app::found_actions(all, "")), ElementsAre("tops", "xst", "Step", "other", "Stop"));
}

TEST(FoundActions, AreFoundByTheirMenuToo) {
  auto all = named("View/Scale", {"150 %"});
  ASSERT_EQ(app::found_actions(all, "scale 150").size(), 1u);
  EXPECT_EQ(app::found_actions(all, "scale 150")[0].name, "Scale: 150 %");
  EXPECT_EQ(app::found_actions(all, "scale 150")[0].place, "View › Scale");
  ASSERT_EQ(app::found_actions(all, "view").size(), 1u);
  EXPECT_THAT(app::found_actions(all, "view")[0].lit, IsEmpty()) << "only letters of the name are lit";
}

TEST(FoundActions, LeaveOutWhatNobodyCanAskFor) {
  auto all = named("Edit", {"Delete"});
  all[0].command = {};
  EXPECT_THAT(app::found_actions(all, "delete"), IsEmpty());
}

}  // namespace
