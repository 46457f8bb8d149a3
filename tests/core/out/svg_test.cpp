#include "core/out/svg.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace core::figures;
using core::colour::rgb;
using testing::HasSubstr;
using testing::Not;

namespace {

DisplayList with(Item item) {
  DisplayList list{100, 50, rgb(0xffffff), "A <title>", {}};
  list.items.push_back(std::move(item));
  return list;
}

TEST(XmlEscaped, LeavesNothingThatXmlReads) {
  EXPECT_EQ(xml_escaped("a<b>&\"c\""), "a&lt;b&gt;&amp;&quot;c&quot;");
  EXPECT_EQ(xml_escaped("é漢🙂"), "é漢🙂");
}

TEST(XmlEscaped, ReplacesWhatXmlDoesNotKnow) {
  const std::string replacement = "\xEF\xBF\xBD";
  EXPECT_EQ(xml_escaped(std::string("a\0b", 3)), "a" + replacement + "b");
  EXPECT_EQ(xml_escaped("\x1b"), replacement);
  EXPECT_EQ(xml_escaped("\xff"
                        "a"),
            replacement + "a");
  EXPECT_EQ(xml_escaped("\xC0\x80"), replacement + replacement);  // an overlong zero
  EXPECT_EQ(xml_escaped("\xED\xA0\x80"),
            replacement + replacement + replacement);             // half of a surrogate pair
  EXPECT_EQ(xml_escaped("\xE6\xBC"), replacement + replacement);  // cut off
}

TEST(Svg, HasTheSizeGroundAndTitleOfTheFigure) {
  const std::string svg = svg_text({100, 50.5, rgb(0x121417), "A <title>", {}});
  EXPECT_THAT(svg, HasSubstr("width=\"100\" height=\"50.5\" viewBox=\"0 0 100 50.5\""));
  EXPECT_THAT(svg, HasSubstr("<rect width=\"100\" height=\"50.5\" fill=\"#121417\"/>"));
  EXPECT_THAT(svg, HasSubstr("<title>A &lt;title&gt;</title>"));
}

TEST(Svg, KeepsWordsAsText) {
  const std::string svg =
      svg_text(with(Text{{10, 20}, Anchor::middle, {{"a & b", 13, rgb(0x1c2127), true}}}));
  EXPECT_THAT(
      svg,
      HasSubstr(
          "<text x=\"10\" y=\"20\" text-anchor=\"middle\" font-size=\"13\" fill=\"#1c2127\" class=\"m\">a &amp; b</text>"));
}

TEST(Svg, LowersASubscriptAndComesBack) {
  Text text{{0, 0}, Anchor::start, {{"W", 14, {}}, {"q", 10, {}}, {"x", 14, {}}}};
  text.runs[1].lowered = 3;
  const std::string svg = svg_text(with(text));
  EXPECT_THAT(svg, HasSubstr("dy=\"3\">q</tspan>"));
  EXPECT_THAT(svg, HasSubstr("dy=\"-3\">x</tspan>"));
}

TEST(Svg, EmbedsAGridAsAPictureOfOnePixelACell) {
  const std::string svg = svg_text(with(Image{{5, 6, 20, 10}, 1, 2, {rgb(0xff0000), rgb(0x00ff00)}}));
  EXPECT_THAT(svg,
              HasSubstr("<image x=\"5\" y=\"6\" width=\"20\" height=\"10\" preserveAspectRatio=\"none\""));
  EXPECT_THAT(svg, HasSubstr("data:image/png;base64,iVBORw0KGgo"));  // PNG's signature
}

TEST(Svg, DefinesAPatternForEachColourOfHatches) {
  const std::string svg = svg_text(with(Hatch{{{1, 2, 3, 4}}, rgb(0xb4bac2)}));
  EXPECT_THAT(svg, HasSubstr("<pattern id=\"hatch-b4bac2\""));
  EXPECT_THAT(svg, HasSubstr("<path d=\"M1 2h3v4h-3z\" fill=\"url(#hatch-b4bac2)\"/>"));
}

}  // namespace
