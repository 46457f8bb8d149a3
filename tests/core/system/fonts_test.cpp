#include "core/system/fonts.hpp"

#include <gmock/gmock.h>

using namespace core::fonts;
using testing::HasSubstr;
namespace {

constexpr char32_t private_use = 0x10fffd;  // for private use: no font should have it

TEST(Fonts, OfTheFamilyComeFirst) {
  const auto fonts = find_covering_fonts("DejaVu Sans", {U'α', U'ש', private_use});
  ASSERT_EQ(fonts.size(), 1u);
  EXPECT_EQ(fonts.front().family, "DejaVu Sans");
  EXPECT_EQ(fonts.front().characters, (std::set<char32_t>{U'α', U'ש'}));
  EXPECT_TRUE(find_covering_fonts("DejaVu Sans", {}).empty());
}

TEST(Fonts, OfOtherFamiliesHaveEachCharacterOnce) {
  const std::set<char32_t> wanted{U'我', U'日', U'한', U'ह', U'α', private_use};
  std::set<char32_t> found;
  for (const Font& font : find_covering_fonts("DejaVu Sans", wanted)) {
    EXPECT_FALSE(font.path.empty());
    EXPECT_FALSE(font.characters.empty());
    for (const char32_t c : font.characters) {
      EXPECT_TRUE(wanted.contains(c));
      EXPECT_TRUE(found.insert(c).second);
    }
  }
  EXPECT_FALSE(found.contains(private_use));
}

TEST(Fonts, ThatAreMissingAreNamedByTheirPackage) {
  EXPECT_EQ(missing_characters_message({}), "");
  EXPECT_EQ(missing_characters_message({U'我'}), "no installed font has 我 (U+6211); install fonts-noto-cjk");
  EXPECT_THAT(missing_characters_message({U'ह', U'我', U'한'}),
              HasSubstr("and 2 more; install fonts-noto-cjk fonts-noto-core"));
  EXPECT_THAT(missing_characters_message({U'😀'}), HasSubstr("(U+1F600)"));
}

}  // namespace
