#include "core/out/svg.hpp"

#include <array>
#include <cmath>
#include <set>
#include <string_view>

#include "core/base/hexadecimal.hpp"
#include "core/base/number.hpp"
#include "core/base/utf8.hpp"
#include "core/out/png_bytes.hpp"

namespace core::figures {
namespace {

/// At most two decimals, without zeros at the end.
std::string number(double value) {
  const double rounded = std::round(value * 100) / 100;
  return text::number_text(rounded == 0 ? 0.0 : rounded);
}

std::string hex(Rgb c) {
  return text::hexadecimal(c.r, 2) + text::hexadecimal(c.g, 2) + text::hexadecimal(c.b, 2);
}

std::string base64(std::string_view bytes) {
  constexpr const char* letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t k = 0; k < bytes.size(); k += 3) {
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 3; ++i)
      group = group << 8 | (k + i < bytes.size() ? static_cast<unsigned char>(bytes[k + i]) : 0u);
    for (std::size_t i = 0; i < 4; ++i)
      text += k + i <= bytes.size() ? letters[group >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

std::string attribute(const char* name, const std::string& value) {
  return std::string(" ") + name + "=\"" + value + "\"";
}

std::string place(const Area& a) {
  return attribute("x", number(a.x)) + attribute("y", number(a.y)) + attribute("width", number(a.width)) +
         attribute("height", number(a.height));
}

std::string fill(Rgb colour) {
  return attribute("fill", "#" + hex(colour));
}

struct Writer {
  std::string& text;

  void operator()(const Box& box) const { text += "<rect" + place(box.area) + fill(box.fill) + "/>\n"; }

  void operator()(const Hatch& hatch) const {
    std::string path;
    for (const Area& a : hatch.areas)
      path += "M" + number(a.x) + " " + number(a.y) + "h" + number(a.width) + "v" + number(a.height) + "h" +
              number(-a.width) + "z";
    text +=
        "<path" + attribute("d", path) + attribute("fill", "url(#hatch-" + hex(hatch.line) + ")") + "/>\n";
  }

  void operator()(const Lines& lines) const {
    std::string path;
    for (const auto& [from, to] : lines.ends)
      path += "M" + number(from.x) + " " + number(from.y) + "L" + number(to.x) + " " + number(to.y);
    text += "<path" + attribute("d", path) + attribute("stroke", "#" + hex(lines.colour)) +
            attribute("stroke-width", number(lines.thickness)) + attribute("fill", "none") + "/>\n";
  }

  void operator()(const Triangles& triangles) const {
    std::string path;
    for (const auto& [a, b, c] : triangles.corners)
      path += "M" + number(a.x) + " " + number(a.y) + "L" + number(b.x) + " " + number(b.y) + "L" +
              number(c.x) + " " + number(c.y) + "z";
    text += "<path" + attribute("d", path) + fill(triangles.fill) + "/>\n";
  }

  void operator()(const Image& image) const {
    text += "<image" + place(image.area) + " preserveAspectRatio=\"none\" image-rendering=\"optimizeSpeed\"" +
            " style=\"image-rendering:pixelated\" xlink:href=\"data:image/png;base64," +
            base64(png_bytes(image.rows, image.columns, image.pixels)) + "\"/>\n";
  }

  void operator()(const Text& t) const {
    constexpr std::array anchors{"", " text-anchor=\"middle\"", " text-anchor=\"end\""};
    text += "<text" + attribute("x", number(t.at.x)) + attribute("y", number(t.at.y)) +
            anchors[static_cast<std::size_t>(t.anchor)];
    if (t.upwards)
      text += attribute("transform", "rotate(-90 " + number(t.at.x) + " " + number(t.at.y) + ")");
    if (t.runs.size() == 1) {
      text += look(t.runs.front()) + ">" + xml_escaped(t.runs.front().text);
    } else {
      text += ">";
      double lowered = 0;
      for (const Run& run : t.runs) {
        text += "<tspan" + look(run);
        if (run.before > 0) text += attribute("dx", number(run.before));
        if (run.lowered != lowered) text += attribute("dy", number(run.lowered - lowered));
        text += ">" + xml_escaped(run.text) + "</tspan>";
        lowered = run.lowered;
      }
    }
    text += "</text>\n";
  }

 private:
  static std::string look(const Run& run) {
    return attribute("font-size", number(run.size)) + fill(run.colour) + (run.mono ? " class=\"m\"" : "");
  }
};

/// A pattern for each colour of hatches: lines where x + y is a multiple of six.
std::string patterns(const DisplayList& figure) {
  std::set<std::string> colours;
  for (const Item& item : figure.items)
    if (const auto* hatch = std::get_if<Hatch>(&item)) colours.insert(hex(hatch->line));
  std::string text;
  for (const std::string& colour : colours)
    text += "<pattern id=\"hatch-" + colour + "\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">" +
            "<path d=\"M-1 1L1 -1M-1 7L7 -1M5 7L7 5\" stroke=\"#" + colour +
            "\" stroke-width=\"0.8\"/></pattern>\n";
  return text;
}

/// The length of the character that begins there, or 0 when it is none that XML knows.
std::size_t character_length(std::string_view text) {
  const auto character = text::first_character(text);
  if (!character) return 0;
  const char32_t c = character->value;
  const bool known = c >= 0x20 ? c != 0xFFFE && c != 0xFFFF : c == '\t' || c == '\n' || c == '\r';
  return known ? character->size : 0;
}

}  // namespace

std::string xml_escaped(std::string_view text) {
  std::string escaped;
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(1, length));
    if (length == 0)
      escaped += "\xEF\xBF\xBD";
    else if (character == "&")
      escaped += "&amp;";
    else if (character == "<")
      escaped += "&lt;";
    else if (character == ">")
      escaped += "&gt;";
    else if (character == "\"")
      escaped += "&quot;";
    else
      escaped += character;
    text.remove_prefix(character.size());
  }
  return escaped;
}

std::string svg_text(const DisplayList& figure) {
  const std::string width = number(figure.width), height = number(figure.height);
  std::string text =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<svg xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\"";
  text += attribute("width", width) + attribute("height", height) +
          attribute("viewBox", "0 0 " + width + " " + height) +
          " font-family=\"'DejaVu Sans', Verdana, sans-serif\" xml:space=\"preserve\">\n";
  text += "<title>" + xml_escaped(figure.title) + "</title>\n";
  text += "<defs>\n<style>.m { font-family: 'DejaVu Sans Mono', Menlo, Consolas, monospace }</style>\n" +
          patterns(figure) + "</defs>\n";
  text += "<rect" + attribute("width", width) + attribute("height", height) + fill(figure.ground) + "/>\n";
  for (const Item& item : figure.items) std::visit(Writer{text}, item);
  return text + "</svg>\n";
}

}  // namespace core::figures
