#include "core/base/utf8.hpp"

#include <gtest/gtest.h>

namespace core::text {
namespace {

struct Encoded {
  char32_t value;
  std::string bytes;
};

/// The first and the last code point of every length, and those beside the surrogates, after table 3-6 of the
/// Unicode standard.
const std::vector<Encoded> ends_of_lengths{
    {0x0, std::string(1, '\0')},   {0x7F, "\x7F"},           {0x80, "\xC2\x80"},
    {0x7FF, "\xDF\xBF"},           {0x800, "\xE0\xA0\x80"},  {0xD7FF, "\xED\x9F\xBF"},
    {0xE000, "\xEE\x80\x80"},      {0xFFFF, "\xEF\xBF\xBF"}, {0x10000, "\xF0\x90\x80\x80"},
    {0x10FFFF, "\xF4\x8F\xBF\xBF"}};

TEST(FirstCharacter, IsDecoded) {
  for (const auto& [value, bytes] : ends_of_lengths) {
    const auto read = first_character(bytes + "é");
    ASSERT_TRUE(read) << std::hex << static_cast<unsigned>(value);
    EXPECT_EQ(read->value, value);
    EXPECT_EQ(read->size, bytes.size());
  }
}

TEST(FirstCharacter, IsNoneWhereTheBytesAreNotValid) {
  for (const char* bytes : {"", "\x80", "\xC0\x80", "\xC1\xBF", "\xC2",
                            "\xC2"
                            "a",
                            "\xE0\x9F\xBF", "\xE2\x82", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
                            "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF"})
    EXPECT_FALSE(first_character(bytes)) << bytes;
}

TEST(AppendCharacter, Encodes) {
  for (const auto& [value, bytes] : ends_of_lengths) {
    std::string text = "x";
    append_character(text, value);
    EXPECT_EQ(text, "x" + bytes);
  }
}

TEST(AppendCharacter, ReplacesWhatIsNone) {
  for (const char32_t value :
       {char32_t{0xD800}, char32_t{0xDFFF}, char32_t{0x110000}, char32_t{0xFFFFFFFF}}) {
    std::string text;
    append_character(text, value);
    EXPECT_EQ(text, "\xEF\xBF\xBD");
  }
}

TEST(CharacterCount, CountsNoByteTwice) {
  EXPECT_EQ(character_count(""), 0u);
  EXPECT_EQ(character_count("aé漢🙂"), 4u);
}

TEST(Printable, LeavesNothingThatActsOnATerminalOrALine) {
  EXPECT_EQ(printable("\x1b[31mred\n\r\x7f"), "\\x1b[31mred\\x0a\\x0d\\x7f");
  EXPECT_EQ(printable_lines("a\n\tb\x1b[2J\r\n"), "a\n\tb\\x1b[2J\\x0d\n");
  EXPECT_EQ(printable("\u0085\u009b"), "\\x85\\x9b");
  EXPECT_EQ(printable("\u202eabc\u2066\u2028"), "\\u202eabc\\u2066\\u2028");
  EXPECT_EQ(printable("a\xff"), "a\uFFFD");
  EXPECT_EQ(printable("héads 漢 🙂"), "héads 漢 🙂");
}

TEST(IsNoncharacter, KnowsThoseOfEveryPlane) {  // The Unicode Standard, section 23.7
  for (const char32_t c : {0xFDD0, 0xFDEF, 0xFFFE, 0xFFFF, 0x1FFFE, 0x10FFFF})
    EXPECT_TRUE(is_noncharacter(c));
  for (const char32_t c : {0x41, 0xFDCF, 0xFDF0, 0xFFFD, 0x10000}) EXPECT_FALSE(is_noncharacter(c));
}

}  // namespace
}  // namespace core::text
