#include <cairo.h>
#include <gmock/gmock.h>
#include <cstring>

#include "core/out/drawing.hpp"
#include "tests/support/error_of.hpp"

using namespace core::figures;
using core::color::Rgb;
using core::color::rgb;
using testing::HasSubstr;

namespace {

TEST(TextWidth, IsThatOfDejaVu) {
  EXPECT_NEAR(text_width("Your", 13), 13 * (611 + 612 + 634 + 411) / 1000.0, 1e-9);
  EXPECT_NEAR(text_width("0.00", 10, true), 24.08, 1e-9);
  EXPECT_NEAR(text_width("漢", 10), 10, 1e-9);
}

TEST(Shortened, FitsAndNeverCutsACharacter) {
  EXPECT_EQ(shortened("step", 13, 100), "step");
  const std::string cut = shortened("ééééééééé", 10, 40);
  EXPECT_LE(text_width(cut, 10), 40);
  EXPECT_EQ(cut, "éééé…");
}

TEST(Shortened, DoesNotReadOnWhereNothingFits) {
  const std::string token(10'000'000, 'x');  // a quadratic algorithm would take days
  EXPECT_EQ(shortened(token, 10, 40), "xxxxx…");
}

TEST(Drawable, HasNeitherMarksOfDirectionNorWhatIsNoCharacter) {
  EXPECT_EQ(token_label("a\u202eb\u009b\uFFFE\xff"), "a�b���");
}

TEST(Drawable, ShowsWhatHasNoShape) {
  EXPECT_EQ(token_label("a\nb\tc\x01"), "a↵b⇥c�");
}

TEST(FormulaRuns, LowerWhatStandsBehindAnUnderscore) {
  const auto runs = formula_runs("X·W_q + b_12", 10, {});
  ASSERT_EQ(runs.size(), 4u);
  EXPECT_EQ(runs[0].text, "X·W");
  EXPECT_EQ(runs[1].text, "q");
  EXPECT_GT(runs[1].baseline_drop, 0);
  EXPECT_EQ(runs[2].baseline_drop, 0);
  EXPECT_EQ(runs[3].text, "12");
}

TEST(LabelStep, DoublesUntilThereIsRoom) {
  EXPECT_EQ(label_step(20, 14), 1u);
  EXPECT_EQ(label_step(7, 14), 2u);
  EXPECT_EQ(label_step(3, 14), 8u);
}

TEST(EndText, HasAsManyDecimalsAsSayAnything) {
  EXPECT_EQ(end_text(0, true), "0");
  EXPECT_EQ(end_text(-2, true), "−2");
  EXPECT_EQ(end_text(2, false), "2.00");
  EXPECT_EQ(end_text(1234.5, true), "1234");
  EXPECT_EQ(end_text(123.45, true), "123.5");
  EXPECT_EQ(end_text(0.01234, false), "0.0123");
  EXPECT_EQ(end_text(1.25e7, true), "1.2e+07");
}

/// Pixels of a PNG as libpng reads them.
struct Picture {
  std::size_t columns = 0, rows = 0;
  std::vector<Rgb> pixels;

  explicit Picture(std::string_view bytes) {
    const auto read = [](void* rest, unsigned char* data, unsigned int length) {
      auto& left = *static_cast<std::string_view*>(rest);
      if (length > left.size()) return CAIRO_STATUS_READ_ERROR;
      left.copy(reinterpret_cast<char*>(data), length);
      left.remove_prefix(length);
      return CAIRO_STATUS_SUCCESS;
    };
    cairo_surface_t* surface = cairo_image_surface_create_from_png_stream(read, &bytes);
    EXPECT_EQ(cairo_surface_status(surface), CAIRO_STATUS_SUCCESS);
    EXPECT_EQ(cairo_image_surface_get_format(surface), CAIRO_FORMAT_RGB24);
    columns = static_cast<std::size_t>(cairo_image_surface_get_width(surface));
    rows = static_cast<std::size_t>(cairo_image_surface_get_height(surface));
    const unsigned char* line = cairo_image_surface_get_data(surface);
    for (std::size_t i = 0; i < rows; ++i, line += cairo_image_surface_get_stride(surface))
      for (std::size_t j = 0; j < columns; ++j) {
        std::uint32_t pixel = 0;
        std::memcpy(&pixel, line + 4 * j, sizeof pixel);
        pixels.push_back(rgb(pixel & 0xffffff));
      }
    cairo_surface_destroy(surface);
  }
  Rgb at(std::size_t x, std::size_t y) const { return pixels.at(y * columns + x); }
};

DisplayList figure_of(std::vector<Item> items) {
  return {40, 20, rgb(0xffffff), "", std::move(items)};
}

TEST(PngBytes, HoldEveryPixel) {
  const std::vector<Rgb> pixels{rgb(0x010203), rgb(0xffffff), rgb(0x808080),
                                rgb(0),        rgb(0xff0000), rgb(0x0000ff)};
  const Picture picture(png_bytes(2, 3, pixels));
  EXPECT_EQ(picture.columns, 3u);
  EXPECT_EQ(picture.rows, 2u);
  for (std::size_t k = 0; k < pixels.size(); ++k) EXPECT_EQ(picture.at(k % 3, k / 3), pixels[k]);
}

TEST(PngBytes, OfMorePixelsThanAnImageMayHaveAreRefused) {
  const std::vector<Rgb> pixels(40000);
  EXPECT_THAT(support::error_of([&] { png_bytes(1, pixels.size(), pixels); }),
              HasSubstr("the picture cannot be made: "));
}

TEST(Png, HasScaleTimesAsManyPixels) {
  const Picture picture(render_png(figure_of({FilledRect{{10, 5, 10, 10}, rgb(0xff0000)}}), 2));
  EXPECT_EQ(picture.columns, 80u);
  EXPECT_EQ(picture.rows, 40u);
  EXPECT_EQ(picture.at(20, 10), rgb(0xff0000));
  EXPECT_EQ(picture.at(39, 29), rgb(0xff0000));
  EXPECT_EQ(picture.at(19, 10), rgb(0xffffff));
  EXPECT_EQ(picture.at(40, 29), rgb(0xffffff));
}

TEST(Png, DrawsCellsOfAGridWithHardEdges) {
  const Picture picture(
      render_png(figure_of({PixelGrid{{0, 0, 40, 20}, 1, 2, {rgb(0x112233), rgb(0x445566)}}}), 1));
  EXPECT_EQ(picture.at(19, 19), rgb(0x112233));
  EXPECT_EQ(picture.at(20, 0), rgb(0x445566));
}

TEST(Png, HatchesOnlyTheAreaAndDrawsWords) {
  const auto inked = [](const Item& item, std::size_t from, std::size_t to) {
    const Picture picture(render_png(figure_of({item}), 1));
    std::size_t n = 0;
    for (std::size_t y = 0; y < 20; ++y)
      for (std::size_t x = from; x < to; ++x) n += !(picture.at(x, y) == rgb(0xffffff));
    return n;
  };
  const Item hatch = HatchedRects{{{0, 0, 20, 20}}, rgb(0)};
  EXPECT_GT(inked(hatch, 0, 20), 60u);
  EXPECT_EQ(inked(hatch, 20, 40), 0u);
  EXPECT_GT(inked(TextLine{{5, 15}, Anchor::start, {{"M", 14, rgb(0)}}}, 0, 40), 10u);
}

TEST(Png, OfAnUnreasonableScaleIsRefused) {
  for (const double scale : {0.0, -1.0, 17.0, std::nan("")})
    EXPECT_THAT(support::error_of([&] { render_png(figure_of({}), scale); }),
                HasSubstr("scale: expected a number from 0.1 to 16"));
  EXPECT_THAT(support::error_of([] {
                render_png({5000, 10, {}, "", {}}, 8);
              }),
              HasSubstr("scale: the picture would have 40000 × 80 pixels"));
}

TEST(Png, IsDrawnWhateverCharactersAWordHas) {
  const TextLine words{{}, Anchor::start, {{"a\uFFFE\uFDD0\xff", 10, rgb(0)}}};
  EXPECT_EQ(Picture(render_png(figure_of({words}), 1)).columns, 40u);
}

TEST(Pdf, IsOnePageAsLargeAsTheFigureAndTheSameEachTime) {
  DisplayList list;
  list.width = 400, list.height = 200, list.title = "Weights, head 1";
  list.items.emplace_back(FilledRect{{10, 10, 50, 20}, rgb(0x112233)});
  list.items.emplace_back(TextLine{{20, 40}, Anchor::start, {{"head 1", 14, rgb(0)}}});
  const std::string pdf = render_pdf(list);
  EXPECT_TRUE(pdf.starts_with("%PDF-1.4"));
  EXPECT_THAT(pdf, HasSubstr("/MediaBox [ 0 0 300 150 ]")) << "a pixel is 1/96 of an inch, a point 1/72";
  EXPECT_THAT(pdf, HasSubstr("/Count 1"));
  EXPECT_THAT(pdf, HasSubstr("/Title"));
  EXPECT_EQ(pdf.find("/CreationDate"), pdf.npos);
  EXPECT_EQ(pdf, render_pdf(list));
}

TEST(Pdf, RefusesPagesThatNoReaderTakes) {
  DisplayList list;
  list.width = 20000, list.height = 10;
  EXPECT_THAT(support::error_of([&] { render_pdf(list); }), HasSubstr("at most 19200 pixels"));
}

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
  const std::string svg = render_svg({100, 50.5, rgb(0x121417), "A <title>", {}});
  EXPECT_THAT(svg, HasSubstr("width=\"100\" height=\"50.5\" viewBox=\"0 0 100 50.5\""));
  EXPECT_THAT(svg, HasSubstr("<rect width=\"100\" height=\"50.5\" fill=\"#121417\"/>"));
  EXPECT_THAT(svg, HasSubstr("<title>A &lt;title&gt;</title>"));
}

TEST(Svg, KeepsWordsAsText) {
  const std::string svg =
      render_svg(with(TextLine{{10, 20}, Anchor::middle, {{"a & b", 13, rgb(0x1c2127), true}}}));
  EXPECT_THAT(
      svg,
      HasSubstr(
          "<text x=\"10\" y=\"20\" text-anchor=\"middle\" font-size=\"13\" fill=\"#1c2127\" class=\"m\">a &amp; b</text>"));
}

TEST(Svg, LowersASubscriptAndComesBack) {
  TextLine text{{0, 0}, Anchor::start, {{"W", 14, {}}, {"q", 10, {}}, {"x", 14, {}}}};
  text.runs[1].baseline_drop = 3;
  const std::string svg = render_svg(with(text));
  EXPECT_THAT(svg, HasSubstr("dy=\"3\">q</tspan>"));
  EXPECT_THAT(svg, HasSubstr("dy=\"-3\">x</tspan>"));
}

TEST(Svg, EmbedsAGridAsAPictureOfOnePixelACell) {
  const std::string svg = render_svg(with(PixelGrid{{5, 6, 20, 10}, 1, 2, {rgb(0xff0000), rgb(0x00ff00)}}));
  EXPECT_THAT(svg,
              HasSubstr("<image x=\"5\" y=\"6\" width=\"20\" height=\"10\" preserveAspectRatio=\"none\""));
  EXPECT_THAT(svg, HasSubstr("data:image/png;base64,iVBORw0KGgo"));  // PNG's signature
}

TEST(Svg, DefinesAPatternForEachColorOfHatches) {
  const std::string svg = render_svg(with(HatchedRects{{{1, 2, 3, 4}}, rgb(0xb4bac2)}));
  EXPECT_THAT(svg, HasSubstr("<pattern id=\"hatch-b4bac2\""));
  EXPECT_THAT(svg, HasSubstr("<path d=\"M1 2h3v4h-3z\" fill=\"url(#hatch-b4bac2)\"/>"));
}

TEST(Figures, HaveABoxForACharacterThatNoFontHas) {
  const auto words = [](const char* text) {
    return figure_of({TextLine{{20, 14}, Anchor::middle, {{text, 12, rgb(0)}}}});
  };
  EXPECT_TRUE(missing_characters(words("Your − journey ·")).empty());
  EXPECT_EQ(missing_characters(words("a\U0010FFFDb")), (std::set<char32_t>{0x10fffd}));
  EXPECT_NE(render_png(words("a\U0010FFFDb"), 1),
            render_png(words("a\U0010FFFCb"), 1));  // the box shows its number
  EXPECT_NE(render_pdf(words("\U0010FFFD")), render_pdf(words(" ")));
}

}  // namespace
