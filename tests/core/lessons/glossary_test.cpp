#include "core/lessons/lessons.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace core::lessons {
namespace {

TEST(Glossary, FindsATermWhateverItsCapitals) {
  ASSERT_NE(find_term("softmax"), nullptr);
  EXPECT_EQ(find_term("Softmax"), find_term("softmax"));
  EXPECT_EQ(std::string(find_term("D_HEAD")->word), "d_head");
  EXPECT_EQ(find_term("no such word"), nullptr);
  EXPECT_EQ(find_term("soft"), nullptr);
}

TEST(Glossary, HasEachWordOnceWithAFullSentence) {
  std::set<std::string> words;
  for (const Term& term : glossary()) {
    EXPECT_TRUE(words.insert(term.word).second) << term.word;
    const std::string meaning = term.meaning;
    EXPECT_GT(meaning.size(), 20u) << term.word;
    EXPECT_EQ(meaning.back(), '.') << term.word;
  }
}

TEST(Glossary, ExplainsEveryWordOfTheNotebooksGlossary) {
  for (const char* word :
       {"token", "embedding", "query", "key", "value", "dot product", "softmax", "mask", "dropout"})
    EXPECT_NE(find_term(word), nullptr) << word;
}

}  // namespace
}  // namespace core::lessons
