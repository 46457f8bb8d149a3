#include "app/ui/panels/layers/prompt.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using app::panels::place_in_lines;
using app::panels::plain_of;
using app::panels::wrapped;

bool ten_letters(const std::string& line) {
  return line.size() <= 10;
}

TEST(WrappedText, EndsLinesAtBlanksAndComesBack) {
  EXPECT_EQ(wrapped("one two three four", ten_letters), "one two\nthree four");
  EXPECT_EQ(wrapped("a\nb", ten_letters), "a\r\nb");
  EXPECT_EQ(wrapped("one two three\nfour five six seven", ten_letters),
            "one two\nthree\r\nfour five\nsix seven");
  EXPECT_EQ(wrapped("extraordinarily long", ten_letters), "extraordinarily\nlong");
  for (const char* text : {"", " ", "  two  blanks  everywhere  ", "one two three four\n\nfive", "\n",
                           "extraordinarily long words have no room", "ends with a blank "})
    EXPECT_EQ(plain_of(wrapped(text, ten_letters)), text);
}

TEST(WrappedText, KeepsPlaces) {
  const std::string text = "one two three\nfour five six", lines = wrapped(text, ten_letters);
  for (std::size_t k = 0; k <= text.size(); ++k) {
    const std::size_t place = place_in_lines(lines, k);
    EXPECT_EQ(plain_of(lines.substr(0, place)), text.substr(0, k)) << k;
  }
}

TEST(WrappedText, ReadsATypedEndOfLineAsOne) {
  EXPECT_EQ(plain_of("one\rtwo"), "one\ntwo") << "as the field has it before it is wrapped again";
}

}  // namespace
