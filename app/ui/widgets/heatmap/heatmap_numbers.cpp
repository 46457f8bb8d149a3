// The numbers in a heatmap's cells.
#include <algorithm>

#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/heatmap/heatmap_drawn.hpp"

namespace app::widgets {
namespace {

using core::attention::Colouring;

// In cells of the first size numbers begin to show, in those of the second they are there.
constexpr float faint_width = 22, faint_height = 12, full_width = 26, full_height = 15;

/// The colour that really lies under a number, after dimming.
Rgb ground_of(const Frame& frame, const Drawn& d, const ColourScale& scale, std::size_t i, std::size_t j) {
  const double v = d.numbers(i, j);
  const Rgb colour = std::isfinite(v) ? scale.colour(v) : frame.palette.hatch.ground;
  const bool off = d.cross && d.cross->row != i && (d.row_only || d.cross->column != j);
  return off ? mix(colour, frame.palette.ground.back, frame.palette.dark ? 0.54f : 0.45f) : colour;
}

/// Few characters may come close to the edge; more decimals are only worth a clear distance.
int characters_that_fit(float cell, float character) {
  const int close = static_cast<int>((cell - 2) / character),
            clear = static_cast<int>((cell - 6) / character);
  return std::max(std::min(close, 5), clear);
}

}  // namespace

double unit_in(const Frame& frame, const Heatmap& map) {
  const Extent e = shown_extent(frame, map);
  return unit_for(std::max(-e.smallest, e.largest));
}

float numbers_strength(const Frame& frame, const Heatmap& map, const Drawn& d) {
  const Metrics& m = frame.metrics;
  if (!map.show_numbers) return 0;
  const auto share = [&](float size, float faint, float full) {
    return (size - m.px(faint)) / std::max(1.0f, m.px(full) - m.px(faint));
  };
  return std::clamp(
      std::min(share(d.cell_width, faint_width, full_width), share(d.cell_height, faint_height, full_height)),
      0.0f, 1.0f);
}

void draw_numbers(const Frame& frame, const Heatmap& map, const Drawn& d, const ColourScale& scale) {
  const float visible = numbers_strength(frame, map, d);
  if (visible == 0) return;
  const CellRange shown = cells_on_screen(d);
  const auto fits = [&](ImFont* font) { return characters_that_fit(d.cell_width, text_width(font, "0")); };
  const bool small = frame.metrics.compact ||
                     (fits(frame.fonts.mono13) < 4 && fits(frame.fonts.mono12) > fits(frame.fonts.mono13));
  ImFont* font = small ? frame.fonts.mono12 : frame.fonts.mono13;
  const int characters = fits(font);
  const NumberFormat format = choose_format(d.numbers, shown, characters, unit_in(frame, map));
  const bool plain_one =
      d.stage.colouring != Colouring::signed_values && colouring_of(map) == d.stage.colouring;
  for (std::size_t i = shown.row0; i < shown.row1; ++i)
    for (std::size_t j = shown.column0; j < shown.column1; ++j) {
      const double v = d.numbers(i, j);
      const bool dropped = v == 0 && is_dropped(frame, map, i, j);
      if (dropped || (!format.fits && std::isfinite(v) && v != 0)) continue;
      const bool hidden = is_hidden(frame, map, i, j);
      Rgb ink = readable_on(ground_of(frame, d, scale, i, j));
      if (std::isnan(v)) ink = frame.palette.status.bad;
      if (std::isinf(v) || hidden) ink = frame.palette.faint;
      const ImVec2 a = d.cell_min(i, j), b = d.cell_max(i, j);
      const ImVec2 middle{std::floor((a.x + b.x - 1) / 2), std::floor((a.y + b.y - 1) / 2)};
      const std::string text = cell_text(v, format, plain_one);
      const float half_width = text_width(font, text) / 2, half_height = font->FontSize / 2;
      // A number of which only a part is in the picture would be another number.
      if (middle.x - half_width < d.corner.x || middle.x + half_width > d.far.x ||
          middle.y - half_height < d.corner.y - 2 || middle.y + half_height > d.far.y + 2)
        continue;
      if (std::isnan(v)) {  // the cross gives way to the word
        ImGui::GetWindowDrawList()->AddRectFilled({middle.x - half_width - 2, middle.y - 7},
                                                  {middle.x + half_width + 2, middle.y + 7},
                                                  packed(frame.palette.hatch.ground));
      }
      draw_text(font, middle, Align::middle, packed(ink, visible), text);
    }
}

}  // namespace app::widgets
