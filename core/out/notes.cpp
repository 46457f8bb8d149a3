#include "core/out/notes.hpp"

#include <algorithm>
#include <string>

#include "core/base/cell_text.hpp"
#include "core/base/cells.hpp"
#include "core/base/words.hpp"
#include "core/out/append.hpp"
#include "core/out/words.hpp"

namespace core::figures {
namespace {

using colour::Palette;
using std::to_string;

/// A small cell that bears a mark, and what it means.
struct Sample {
  unsigned mark;
  const char* words;
};
constexpr Sample samples[]{
    {colour::mark::minus_infinity, "−∞"},     {colour::mark::hidden, "hidden by the mask"},
    {colour::mark::dropped, "dropped"},       {colour::mark::not_a_number, "not a number (0/0)"},
    {colour::mark::above, "above the range"}, {colour::mark::below, "below the range"}};

void draw_sample(DisplayList& list, unsigned mark, double x, const Palette& p) {
  constexpr double side = 12;
  const bool plain = mark == colour::mark::not_a_number || mark == colour::mark::minus_infinity;
  const Rgb ground = plain ? p.hatch.ground : colour::colour_at(colour::ColourMap::weights, p.dark, 0),
            ink = colour::readable_on(ground);
  list.items.emplace_back(Box{{x, 0, side, side}, ground});
  const auto cross = [&](Rgb ink_of_cross, double thickness) {
    list.items.emplace_back(Lines{
        {{Point{x + 2, 2}, Point{x + side - 2, side - 2}}, {Point{x + 2, side - 2}, Point{x + side - 2, 2}}},
        thickness,
        ink_of_cross});
  };
  if (mark == colour::mark::minus_infinity)
    list.items.emplace_back(Hatch{{{x, 0, side, side}}, p.hatch.lines});
  if (mark == colour::mark::hidden)
    list.items.emplace_back(Hatch{{{x, 0, side, side}}, colour::mix(ink, ground, 0.3f)});
  if (mark == colour::mark::dropped) cross(ink, 1.5);
  if (mark == colour::mark::not_a_number) cross(p.status.bad, 1.2);
  const bool above = mark == colour::mark::above;
  if (above || mark == colour::mark::below) {
    const double y = above ? 0 : side, inner = above ? 6 : side - 6;
    list.items.emplace_back(
        Triangles{{{Point{x + side - 6, y}, Point{x + side, y}, Point{x + side, inner}}}, ink});
  }
}

/// Of maps with several units it is said which have this one.
std::string unit_note(double unit, bool are_several) {
  const std::string words = "numbers in cells × " + text::unit_words(unit);
  if (!are_several) return words;
  const double least = unit == 0.001 ? 1e-5 : unit;
  return words + " where the largest is from " + text::unit_words(least) + " to " +
         (unit == 0.001 ? "0.01" : text::unit_words(10 * unit));
}

}  // namespace

void Notes::add(const MapFigure& figure, const Map& map) {
  marks |= figure.marks;
  by_hand |= !map.by_hand.empty();
  block_rows = std::max(block_rows, figure.block_rows),
  block_columns = std::max(block_columns, figure.block_columns);
  if (figure.block_rows * figure.block_columns > 1) pooled_as.insert(colour::pooled_as(map.shading.map));
  units.insert(figure.unit);
  logarithmic |= map.shading.least > 0;
}

DisplayList notes_figure(const Notes& notes, const Palette& p, double room) {
  DisplayList list;
  double x = 0, y = 0;
  const auto add = [&](const std::string& words, auto draw_swatch, double swatch) {
    const double width = swatch + text_width(words, 12);
    if (x > 0 && x + width > room) x = 0, y += 20;
    DisplayList part;
    draw_swatch(part);
    part.items.emplace_back(Text{{swatch, 10.5}, Anchor::start, {{words, 12, p.dim}}});
    append(list, part, {x, y});
    x += width + 22;
    list.width = std::max(list.width, x - 22), list.height = y + 14;
  };
  for (const Sample& sample : samples)
    if (notes.marks & sample.mark)
      add(
          sample.words, [&](DisplayList& part) { draw_sample(part, sample.mark, 0, p); }, 18);
  if (notes.by_hand)
    add(
        "switched by hand",
        [&](DisplayList& part) {
          part.items.emplace_back(Box{{3, 3, 6, 6}, p.accent});
        },
        18);
  const auto nothing = [](DisplayList&) {};
  if (notes.block_rows > 1 || notes.block_columns > 1)
    add("1 pixel shows the " + text::joined(notes.pooled_as, " or the ") + " of " +
            to_string(notes.block_rows) + " × " + to_string(notes.block_columns) + " cells",
        nothing, 0);
  if (notes.logarithmic) add("colours follow the logarithm", nothing, 0);
  for (const double unit : notes.units)
    if (unit != 1) add(unit_note(unit, notes.units.size() > 1), nothing, 0);
  return list;
}

}  // namespace core::figures
