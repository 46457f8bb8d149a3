// The numbers in a heatmap's cells.
#include <algorithm>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/heatmap/heatmap_drawn.hpp"

namespace app::widgets {
namespace {

using core::attention::Coloring;
using core::text::NumberNeeds;

constexpr float least_height = 15;       // of a cell with a number, at scale 1
constexpr float room_for_line = 1.2f;    // of a cell, in heights of its font
constexpr float room_for_large = 2;      // likewise, of the fonts that only large cells have
constexpr std::size_t few_cells = 4096;  // up to here every number counts, not only those on the screen

/// The color that really lies under a number, after dimming.
Rgb ground_of(const Frame& frame, const Drawn& d, const ColorScale& scale, std::size_t i, std::size_t j) {
  const double v = d.numbers(i, j);
  const Rgb color = std::isfinite(v) ? scale.color(v) : frame.palette.hatch.ground;
  const bool off = d.cross && d.cross->row != i && (d.row_only || d.cross->column != j);
  return off ? mix(color, frame.palette.ground.back, frame.palette.dark ? 0.54f : 0.45f) : color;
}

/// How many characters leave a digit's width between neighbours.
int characters_in(float cell, ImFont* font) {
  return static_cast<int>((cell + 0.01f) / text_width(font, "0")) - 1;
}

NumberNeeds needs_in(const Frame& frame, const Heatmap& map, const Drawn& d) {
  const bool few = d.numbers.n_rows * d.numbers.n_cols <= few_cells;
  const CellRange all{0, d.numbers.n_rows, 0, d.numbers.n_cols};
  return core::text::needs_of(d.numbers, few ? all : cells_on_screen(d), unit_in(frame, map));
}

}  // namespace

float text_growth(const Frame& frame) {
  return platform::font_size(frame.fonts.mono13) / std::max(1.0f, std::round(13 * frame.metrics.scale));
}

float cell_width_for(const Frame& frame, int characters) {
  return std::ceil(static_cast<float>(characters + 1) * text_width(frame.fonts.mono12, "0") - 0.01f);
}

NumberNeeds needs_of_stage(const Frame& frame, Stage stage, std::size_t head) {
  const auto& numbers = core::attention::info(stage).matrix(frame.shown.trace, head);
  if (numbers.n_rows() * numbers.n_cols() <= few_cells)
    return core::text::needs_of(numbers, {0, numbers.n_rows(), 0, numbers.n_cols()});
  const Extent& e = extent_of_stage(frame, stage, head);
  return core::text::needs_of(arma::mat{e.smallest, e.largest}, {0, 1, 0, 2});
}

double unit_in(const Frame& frame, const Heatmap& map) {
  const Extent e = shown_extent(frame, map);
  return unit_for(std::max(-e.smallest, e.largest));
}

CellDigits cell_digits(const Frame& frame, const Heatmap& map, const Drawn& d) {
  const Metrics& m = frame.metrics;
  const Fonts& f = frame.fonts;
  // Most cells are too small for any number, whatever it is.
  if (!map.show_numbers || d.cell_height < m.px(least_height) ||
      d.cell_height < room_for_line * platform::font_size(f.mono12) ||
      characters_in(d.cell_width, f.mono12) < 1)
    return {};
  const NumberNeeds needs = needs_in(frame, map, d);
  const NumberFormat format =
      needs.format(characters_in(d.cell_width, f.mono12), std::max(map.most_decimals, 1));
  if (!format.fits) return {};
  // The largest font that costs no decimals.
  const auto fits = [&](ImFont* font, float room) {
    return d.cell_height >= room * platform::font_size(font) &&
           characters_in(d.cell_width, font) >= needs.characters(format.decimals);
  };
  if (fits(f.mono32, room_for_large)) return {f.mono32, format};
  if (fits(f.mono24, room_for_large)) return {f.mono24, format};
  if (fits(f.mono18, room_for_large)) return {f.mono18, format};
  if (fits(f.mono14, room_for_large)) return {f.mono14, format};
  return {!m.compact && fits(f.mono13, room_for_line) ? f.mono13 : f.mono12, format};
}

void draw_numbers(const Frame& frame, const Heatmap& map, const Drawn& d, const ColorScale& scale) {
  const auto [font, format] = cell_digits(frame, map, d);
  if (!font) return;
  const CellRange shown = cells_on_screen(d);
  const bool plain_one = d.stage.coloring != Coloring::signed_values && coloring_of(map) == d.stage.coloring;
  for (std::size_t i = shown.row0; i < shown.row1; ++i)
    for (std::size_t j = shown.column0; j < shown.column1; ++j) {
      const double v = d.numbers(i, j);
      const bool dropped = v == 0 && is_dropped(frame, map, i, j);
      const bool hidden = is_hidden(frame, map, i, j);
      if (dropped && !(hidden && d.cell_width >= frame.metrics.px(26))) continue;
      Rgb ink = readable_on(ground_of(frame, d, scale, i, j));
      if (std::isnan(v)) ink = frame.palette.status.bad;
      if (std::isinf(v) || hidden) ink = frame.palette.faint;
      const ImVec2 a = d.cell_min(i, j), b = d.cell_max(i, j);
      // Beside the cross of what is dropped, which then stands as far at the left.
      const float across = dropped ? 0.67f : 0.5f;
      const ImVec2 middle{std::floor(a.x + (b.x - 1 - a.x) * across), d.middle_of_row(i)};
      const std::string text = cell_text(v, format, plain_one);
      const float half_width = text_width(font, text) / 2, half_height = platform::font_size(font) / 2;
      // A number of which only a part is in the picture would be another number.
      if (middle.x - half_width < d.corner.x || middle.x + half_width > d.far.x ||
          middle.y - half_height < d.corner.y - 2 || middle.y + half_height > d.far.y + 2)
        continue;
      if (std::isnan(v)) {  // the cross gives way to the word
        ImGui::GetWindowDrawList()->AddRectFilled({middle.x - half_width - 2, middle.y - 7},
                                                  {middle.x + half_width + 2, middle.y + 7},
                                                  packed(frame.palette.hatch.ground));
      }
      draw_text(font, middle, Align::middle, packed(ink), text);
    }
}

}  // namespace app::widgets
