#include "core/editing/draw.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/random.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/random_model.hpp"

namespace core::text {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

attention::Model base_model() {
  support::Random random(3);
  return support::model(random, 6, 3, 4, 2, 2);
}

TEST(Words, KeepPunctuationApartAndApostrophesWithin) {
  EXPECT_THAT(words("I'm here, well-known: 3.5 (or 4)."),
              ElementsAre("I'm", "here", ",", "well-known", ":", "3.5", "(", "or", "4", ")", "."));
  EXPECT_THAT(words("'quoted' end-"), ElementsAre("'", "quoted", "'", "end", "-"));
  EXPECT_THAT(words("…a.b"), ElementsAre("…", "a", ".", "b"));
}

TEST(Words, OfAnyScriptAreCutAtItsOwnSpacesAndMarks) {
  EXPECT_THAT(words("¿Qué\tpasó?\n"), ElementsAre("¿", "Qué", "pasó", "?"));
  EXPECT_THAT(words("注意力，机制。"), ElementsAre("注意力", "，", "机制", "。"));
  EXPECT_THAT(words("l’été\u00A0« бег »\u3000终"), ElementsAre("l’été", "«", "бег", "»", "终"));
}

TEST(Characters, AreCodePointsWithWhiteSpaceShown) {
  EXPECT_THAT(characters("aé 注\n😀"), ElementsAre("a", "é", "␣", "注", "↵", "😀"));
}

TEST(Sentence, OfTooMuchTextIsRefusedInOneLine) {
  const std::string million(1'000'000, 'a');
  EXPECT_EQ(support::error_of([&] { characters(million); }),
            "text: expected at most 65536 bytes, got 1000000");
  EXPECT_EQ(support::error_of([] { characters(std::string(513, 'a')); }),
            "text: expected at most 512 tokens, got 513");
  EXPECT_EQ(characters(std::string(512, 'a')).size(), 512u);
  EXPECT_EQ(support::error_of([] { words(" \t\n"); }), "text: expected at least one token");
  EXPECT_EQ(support::error_of([] { characters(""); }), "text: expected at least one token");
}

TEST(Sentence, OfInvalidUtf8IsRefusedAtTheByte) {
  for (const char* bad :
       {"ab\x80", "ab\xC3", "ab\xC0\xAF", "ab\xED\xA0\x80", "ab\xF5\x80\x80\x80", "ab\xE2\x82z"})
    for (const TokenRule rule : {TokenRule::words, TokenRule::characters})
      EXPECT_EQ(support::error_of([&] { tokens(bad, rule); }), "text: byte 2 is no valid UTF-8");
}

TEST(Vocabulary, HoldsEachTokenOnceInOrderOfAppearance) {
  EXPECT_THAT(vocabulary({"the", "cat", "the", "mat", "cat"}), ElementsAre("the", "cat", "mat"));
}

TEST(WithSentence, GivesEqualTokensTheirRowOfTheEmbedding) {
  const attention::Model m = with_sentence(base_model(), words("the cat on the mat"), 123);
  ASSERT_EQ(m.sequences.size(), 1u);
  const arma::mat& x = m.sequences[0].embeddings;
  ASSERT_EQ(x.n_rows, 5u);
  ASSERT_EQ(x.n_cols, 3u);
  const auto table = random::Generator(123).normal(4 * 3);  // the, cat, on, mat
  const std::vector<std::size_t> rows{0, 1, 2, 0, 3};
  for (std::size_t i = 0; i < 5; ++i)
    for (std::size_t c = 0; c < 3; ++c) EXPECT_EQ(x(i, c), table[rows[i] * 3 + c]);
  EXPECT_EQ(m.projections, base_model().projections);
  EXPECT_EQ(m.n_heads, 2u);
}

TEST(WithSentence, DropsWhatSpokeOfOtherTokensOnly) {
  attention::Model base = base_model();
  base.mask.cells = {{1, 2, true}, {5, 0, false}};
  base.dropout.given.assign(4, arma::mat(6, 6, arma::fill::ones));
  const attention::Model m = with_sentence(base, words("one two three"), 1);
  EXPECT_EQ(m.mask.cells, (std::vector<attention::MaskCell>{{1, 2, true}}));
  EXPECT_TRUE(m.dropout.given.empty());
}

TEST(WithSentence, LongerThanTheContextLengthNamesBothNumbers) {
  attention::Model base = base_model();
  base.context_length = 6;
  const auto seven = words("a b c d e f g");
  EXPECT_THAT(support::error_of([&] { with_sentence(base, seven, 1); }), HasSubstr("at most 6 tokens"));
  EXPECT_THAT(support::error_of([&] { with_sentence(base, seven, 1); }), HasSubstr("got 7"));
}

}  // namespace
}  // namespace core::text
