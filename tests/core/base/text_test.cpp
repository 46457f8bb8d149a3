// Numbers and texts: shortest decimals, parsing, ordering, suggestions, UTF-8.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "core/base/number.hpp"
#include "core/base/text.hpp"
#include "core/base/utf8.hpp"

namespace core::text {
namespace {

std::uint64_t bits(double number) {
  return std::bit_cast<std::uint64_t>(number);
}

TEST(ToldNumber, NamesWhatFloat32HoldsByItsOwnShortestDecimal) {
  EXPECT_EQ(display_number(static_cast<double>(0.15f)), "0.15 (float32)");
  EXPECT_EQ(display_number(0.15), "0.15") << "this one is no float32";
  EXPECT_EQ(display_number(0.5), "0.5") << "the same in both";
  EXPECT_EQ(display_number(1e300), "1e+300");
  EXPECT_EQ(display_number(-std::numeric_limits<double>::infinity()), "-inf");
}

TEST(NumberText, IsTheShortestDecimal) {
  EXPECT_EQ(number_text(0.1), "0.1");
  EXPECT_EQ(number_text(-2), "-2");
  EXPECT_EQ(number_text(1.0 / 3), "0.3333333333333333");
  EXPECT_EQ(number_text(1e23), "1e+23");
  EXPECT_EQ(number_text(5e-324), "5e-324");
  EXPECT_EQ(number_text(0.43f), "0.4300000071525574");
  EXPECT_EQ(number_text(INFINITY), "inf");
  EXPECT_EQ(number_text(-INFINITY), "-inf");
  EXPECT_EQ(number_text(NAN), "nan");
  EXPECT_EQ(number_text(-NAN), "nan");
}

TEST(NumberText, ReadsBackToTheSameBits) {
  std::mt19937_64 random(1);
  for (int k = 0; k < 100'000; ++k) {
    const double number = std::bit_cast<double>(random());
    if (std::isnan(number)) continue;
    const auto back = parse_number(number_text(number));
    ASSERT_TRUE(back) << number_text(number);
    ASSERT_EQ(bits(*back), bits(number)) << number_text(number);
  }
  EXPECT_EQ(bits(*parse_number(number_text(-0.0))), bits(-0.0));
  EXPECT_TRUE(std::isnan(*parse_number("nan")));
}

TEST(ParseNumber, AsksForTheWholeText) {
  for (const char* text : {"", " 1", "1 ", "1,5", "1.5x", "0x10", "+1", "1e", "--1", "-", ".", "e5",
                           "infinity", "NAN", "nan(1)", "1e999"})
    EXPECT_FALSE(parse_number(text)) << text;
}

TEST(ParseNumber, TakesWhatIsTooSmallForFloat64AsZero) {  // as strtod and NumPy do
  for (const char* text :
       {"1e-400", "0.0001e-320", "123e-400", "1e-99999999999999999999", "0.00e99999999999999999999"}) {
    ASSERT_TRUE(parse_number(text)) << text;
    EXPECT_EQ(bits(*parse_number(text)), bits(0.0)) << text;
    EXPECT_FALSE(is_beyond_float64(text)) << text;
  }
  EXPECT_EQ(bits(*parse_number("-1e-400")), bits(-0.0));
  for (const char* text : {"1e400", "-1e400", "123e308", "0.001e99999999999999999999"}) {
    EXPECT_FALSE(parse_number(text)) << text;
    EXPECT_TRUE(is_beyond_float64(text)) << text;
  }
  for (const char* text : {"1e308", "x", "", "1e", "inf"}) EXPECT_FALSE(is_beyond_float64(text)) << text;
}

TEST(ParseWholeNumber, AsksForDigitsAlone) {
  EXPECT_EQ(parse_unsigned("0"), 0u);
  EXPECT_EQ(parse_unsigned("007"), 7u);
  EXPECT_EQ(parse_unsigned("18446744073709551615"), UINT64_MAX);
  for (const char* text : {"", "-1", "+1", " 1", "1 ", "1.0", "1e3", "0x1", "x", "18446744073709551616"})
    EXPECT_FALSE(parse_unsigned(text)) << text;
}

TEST(CellText, UnitLetsSmallNumbersBeRead) {
  EXPECT_EQ(unit_for(3), 1);
  EXPECT_EQ(unit_for(0), 1);
  EXPECT_EQ(unit_for(0.005), 0.001);
  EXPECT_EQ(unit_for(2e-5), 0.001);
  EXPECT_EQ(unit_for(1.2e-7), 1e-7);
  EXPECT_EQ(unit_for(9.9e-6), 1e-6);
  EXPECT_GT(unit_for(5e-324), 0);
  EXPECT_EQ(unit_text(0.001), "0.001");
  EXPECT_EQ(unit_text(1e-7), "1e−7");
  EXPECT_EQ(unit_text(1e-16), "1e−16");
}

TEST(CellText, DifferencesOfRoundingAreReadable) {
  const arma::mat difference{{1.23e-7, -4.5e-8}, {0, 9e-10}};
  const NumberFormat format = choose_format(difference, {0, 2, 0, 2}, 5);
  EXPECT_EQ(format.unit, 1e-7);
  EXPECT_EQ(cell_text(difference(0, 0), format, false), "1.23");
  EXPECT_EQ(cell_text(difference(0, 1), format, false), "−0.45");
  EXPECT_EQ(cell_text(difference(1, 0), format, false), "0");
}

TEST(CellText, SharesAreNeverRoundedTo0Or1) {
  for (const auto& [share, decimals, text] : {std::tuple{0.5, 2, "0.50"},
                                              {1.0, 2, "1.00"},
                                              {0.0, 2, "0.00"},
                                              {0.996, 2, "0.996"},
                                              {0.99996, 4, "0.99996"},
                                              {1 - 1e-9, 4, "≈1"},
                                              {0.004, 2, "0.004"},
                                              {1e-12, 2, "≈0"}})
    EXPECT_EQ(fraction_text(share, decimals), text);
}

TEST(ComesBefore, CountsNumbersAsNumbers) {
  EXPECT_TRUE(natural_less("h.2.attn", "h.10.attn"));
  EXPECT_FALSE(natural_less("h.10.attn", "h.2.attn"));
  EXPECT_TRUE(natural_less("h.9", "h.9a"));
  EXPECT_TRUE(natural_less("h.12.a", "h.13.a"));
  EXPECT_TRUE(natural_less("h.2", "h.a"));
  EXPECT_FALSE(natural_less("h.2", "h.2"));
  EXPECT_TRUE(natural_less("", "a"));
}

TEST(Distance, CountsLettersPutInTakenOutAndChanged) {
  EXPECT_EQ(edit_distance("scale", "scale"), 0u);
  EXPECT_EQ(edit_distance("scale", "scales"), 1u);
  EXPECT_EQ(edit_distance("scale", "sale"), 1u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("", "mask"), 4u);
}

TEST(Suggestion, IsTheNearestWordUnlessAllAreFar) {
  EXPECT_EQ(suggestion("maks", {"mask", "dropout"}), "; did you mean \"mask\"?");
  EXPECT_EQ(suggestion("wombat", {"mask", "dropout"}), "");
  EXPECT_EQ(suggestion(std::string(41, 'a'), {"mask"}), "");
}

TEST(Text, IsTrimmedLoweredAndWrittenInHexadecimal) {
  EXPECT_EQ(trimmed(" \ta b\t"), "a b");
  EXPECT_EQ(trimmed(" \t "), "");
  EXPECT_EQ(lower("D_Model É9"), "d_model É9");
  EXPECT_EQ(hexadecimal(0xcbf29ce484222325, 16), "cbf29ce484222325");
  EXPECT_EQ(hexadecimal(0x1b, 4), "001b");
  EXPECT_EQ(hexadecimal(std::string_view("\x00\xff/", 3)), "00ff2f");
  EXPECT_EQ(hexadecimal(std::string_view()), "");
}

/// Puts subscripts in brackets and other pieces in parentheses.
std::string marked(std::string_view formula) {
  std::string text;
  for (const FormulaPiece& piece : formula_pieces(formula))
    text += piece.subscript ? "[" + std::string(piece.text) + "]" : "(" + std::string(piece.text) + ")";
  return text;
}

TEST(FormulaPieces, LowerALetterOrAllDigitsBehindAnUnderscore) {
  EXPECT_EQ(marked("X·W_q + b_12"), "(X·W)[q]( + b)[12]");
  EXPECT_EQ(marked("b_12x"), "(b)[12](x)");
  EXPECT_EQ(marked("a_bc"), "(a)[b](c)");
  EXPECT_EQ(marked("_1_2"), "[1][2]");
  EXPECT_EQ(marked("softmax"), "(softmax)");
  EXPECT_EQ(marked("ends_"), "(ends)");
  EXPECT_EQ(marked(""), "");
}

struct Encoded {
  char32_t value;
  std::string bytes;
};

/// The first and last code point of every length and the neighbors of the surrogates: Unicode Standard,
/// table 3-6.
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
