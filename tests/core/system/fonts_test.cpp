#include "core/system/fonts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace core::fonts;
using testing::HasSubstr;
namespace {

constexpr char32_t nobodys = 0x10fffd;  // for private use: no font should have it

TEST(Fonts, OfTheFamilyComeFirst) {
  const auto fonts = fonts_with("DejaVu Sans", {U'α', U'ש', nobodys});
  ASSERT_EQ(fonts.size(), 1u);
  EXPECT_EQ(fonts.front().family, "DejaVu Sans");
  EXPECT_EQ(fonts.front().characters, (std::set<char32_t>{U'α', U'ש'}));
  EXPECT_TRUE(fonts_with("DejaVu Sans", {}).empty());
}

TEST(Fonts, OfOtherFamiliesHaveEachCharacterOnce) {
  const std::set<char32_t> wanted{U'我', U'日', U'한', U'ह', U'α', nobodys};
  std::set<char32_t> found;
  for (const Font& font : fonts_with("DejaVu Sans", wanted)) {
    EXPECT_FALSE(font.path.empty());
    EXPECT_FALSE(font.characters.empty());
    for (const char32_t c : font.characters) {
      EXPECT_TRUE(wanted.contains(c));
      EXPECT_TRUE(found.insert(c).second);
    }
  }
  EXPECT_FALSE(found.contains(nobodys));
}

TEST(Fonts, ThatAreMissingAreNamedByTheirPackage) {
  EXPECT_EQ(missing_words({}), "");
  EXPECT_EQ(missing_words({U'我'}), "no installed font has 我 (U+6211); install fonts-noto-cjk");
  EXPECT_THAT(missing_words({U'ह', U'我', U'한'}),
              HasSubstr("and 2 more; install fonts-noto-cjk fonts-noto-core"));
  EXPECT_THAT(missing_words({U'😀'}), HasSubstr("(U+1F600)"));
}

}  // namespace
