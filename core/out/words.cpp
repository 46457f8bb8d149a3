#include "core/out/words.hpp"

#include <array>
#include <cmath>

#include "core/base/cell_text.hpp"
#include "core/base/code_points.hpp"
#include "core/base/formula.hpp"
#include "core/base/utf8.hpp"

namespace core::figures {
namespace {

constexpr double mono_width = 0.602;  // of the em, every character
constexpr double subscript_size = 0.76, subscript_drop = 0.24;

// Thousandths of the em in DejaVu Sans, from the blank to the tilde.
constexpr std::array<short, 95> sans_widths{
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361,  318, 337, 636, 636, 636,
    636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632,
    575, 775, 752, 295, 295, 656, 557, 863, 748, 787, 603, 787, 695, 635,  611, 732, 684, 989, 685,
    611, 685, 390, 337, 390, 838, 500, 500, 613, 635, 550, 635, 615, 352,  635, 634, 278, 278, 579,
    278, 974, 634, 612, 635, 635, 411, 521, 392, 634, 592, 818, 592, 592,  525, 636, 337, 636, 838};

/// In thousandths of the em; what is beyond Latin is taken to be as wide as Chinese.
double sans_width(std::string_view character) {
  const auto first = static_cast<unsigned char>(character.front());
  if (character.size() == 1 && first >= ' ' && first <= '~') return sans_widths[first - ' '];
  if (character == "·") return 318;
  if (character.size() == 2) return 650;
  return 1000;
}

}  // namespace

double text_width(std::string_view text, double size, bool mono) {
  double width = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = begin + 1;
    while (end < text.size() && !text::starts_character(text[end])) ++end;
    width += mono ? mono_width : sans_width(text.substr(begin, end - begin)) / 1000;
    begin = end;
  }
  return width * size;
}

double text_width(const std::vector<Run>& runs) {
  double width = 0;
  for (const Run& run : runs) width += run.before + text_width(run.text, run.size, run.mono);
  return width;
}

std::string shortened(const std::string& text, double size, double room) {
  double ems = 0;
  std::size_t fits = 0;  // bytes before which there is room for the sign that something is missing
  for (std::size_t begin = 0; begin < text.size() && ems * size <= room;) {
    std::size_t end = begin + 1;
    while (end < text.size() && !text::starts_character(text[end])) ++end;
    if (ems * size + size <= room) fits = begin;
    ems += text_width(std::string_view(text).substr(begin, end - begin), 1);
    begin = end;
  }
  if (ems * size <= room) return text;
  return text.substr(0, fits) + "…";
}

std::string drawable(std::string_view token) {
  std::string text;
  for (const char32_t c : text::repaired_characters(token)) {
    if (c == U'\n')
      text += "↵";
    else if (c == U'\t')
      text += "⇥";
    else
      text::append_character(text, text::is_control(c) || text::is_noncharacter(c) ? U'\uFFFD' : c);
  }
  return text;
}

std::vector<Run> formula_runs(std::string_view formula, double size, Rgb colour) {
  std::vector<Run> runs;
  for (const text::FormulaPiece& piece : text::formula_pieces(formula)) {
    Run run{std::string(piece.text), size, colour};
    if (piece.subscript) run.size = subscript_size * size, run.lowered = subscript_drop * size;
    runs.push_back(run);
  }
  return runs;
}

std::size_t label_step(double cell, double room) {
  std::size_t step = 1;
  while (cell * static_cast<double>(step) < room) step *= 2;
  return step;
}

std::string end_text(double value, bool whole_alone) {
  const double size = std::abs(value);
  if (size == 0) return "0";
  if (size >= 1e5 || size < 1e-4) return text::scientific(value);
  if (whole_alone && value == std::floor(value)) return text::fixed(value, 0);
  return text::fixed(value, size >= 1000 ? 0 : size >= 100 ? 1 : size >= 0.1 ? 2 : 4);
}

}  // namespace core::figures
