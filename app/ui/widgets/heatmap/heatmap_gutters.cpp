// Row sums and entropies right of a heatmap.
#include <algorithm>
#include <array>
#include <cmath>

#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/heatmap/heatmap_drawn.hpp"
#include "app/ui/widgets/pen.hpp"

namespace app::widgets {
namespace {

using core::attention::Coloring;
using core::attention::Columns;
using core::attention::RowFacts;

constexpr float smallest_line = 14;

/// One column of figures, and the end of its bars.
struct Gutter {
  const char* title;
  const char* about;
  double RowFacts::*figure;
  double top;
};

/// A number, or where rows are too narrow for one, a bar.
void draw_figure(const Frame& frame, const Drawn& d, const Gutter& gutter, double v, float left, float right,
                 std::size_t row) {
  const float middle = d.y(static_cast<double>(row) + 0.5);
  const bool chosen = d.cross && d.cross->row == row;
  if (d.cell_height >= frame.metrics.px(smallest_line)) {
    draw_text(frame.fonts.mono12, {right, middle}, Align::right_middle,
              packed(chosen ? frame.palette.text : frame.palette.dim),
              std::abs(v) < 1000 ? fixed(v, 3) : scientific(v));
    return;
  }
  const float share =
      static_cast<float>(gutter.top > 0 ? std::clamp(std::abs(v) / gutter.top, 0.0, 1.0) : 0.0);
  const float half = std::max(0.5f, d.cell_height / 2 - (d.cell_height > 4 ? 1.0f : 0.0f));
  ImGui::GetWindowDrawList()->AddRectFilled({left, middle - half},
                                            {left + (right - left) * share, middle + half},
                                            packed(chosen ? frame.palette.text : frame.palette.dim));
}

}  // namespace

int gutter_count(Stage stage) {
  const auto& info = core::attention::info(stage);
  if (info.columns != Columns::tokens) return 0;
  return info.coloring == Coloring::weights ? 2 : 1;
}

void draw_gutters(const Frame& frame, const Heatmap& map, const Drawn& d) {
  const std::vector<RowFacts>& facts =
      frame.work.statistics.rows(frame.shown.trace, frame.shown.version, map.stage, map.head);
  double largest = 0;
  for (const RowFacts& row : facts) largest = std::max(largest, std::abs(row.sum));
  const std::array<Gutter, 2> gutters{
      Gutter{"sum", "The sum of the row's finite numbers", &RowFacts::sum, largest},
      Gutter{"bit", "The entropy of the row in bit: 0 when one key has all of the weight",
             &RowFacts::entropy_bits,
             std::log2(static_cast<double>(std::max<std::size_t>(2, d.numbers.n_cols)))}};
  for (int k = 0; k < gutter_count(map.stage); ++k) {
    const Gutter& gutter = gutters.at(static_cast<std::size_t>(k));
    const float left = d.far.x + frame.metrics.px(6) + map.gutter_width * static_cast<float>(k);
    const float right = left + map.gutter_width - frame.metrics.px(6);
    draw_text(frame.fonts.mono12, {right, d.corner.y - frame.metrics.px(9)}, Align::right_middle,
              packed(frame.palette.faint), gutter.title);
    if (d.cell_height < frame.metrics.px(smallest_line))
      ImGui::GetWindowDrawList()->AddRectFilled({left, d.corner.y}, {right, d.far.y},
                                                packed(frame.palette.ground.panel));
    for (std::size_t i = 0; i < facts.size(); ++i)
      if (d.shows_row(i)) draw_figure(frame, d, gutter, facts[i].*gutter.figure, left, right, i);
    frame.landmarks.mark(map.place + "/gutter/" + gutter.title, {left, d.corner.y}, {right, d.far.y});
    if (facts.empty()) continue;  // they are still being worked out
    if (!ImGui::IsWindowHovered() ||
        !ImGui::IsMouseHoveringRect({left, d.corner.y - frame.metrics.px(18)}, {right, d.far.y}))
      continue;
    const double place =
        d.part.top + static_cast<double>((ImGui::GetIO().MousePos.y - d.corner.y) / d.cell_height);
    const auto row = static_cast<std::size_t>(std::clamp(place, 0.0, static_cast<double>(facts.size() - 1)));
    const std::string words = std::string(gutter.about) + "\nrow " + std::to_string(row) + ": " +
                              inspected(facts[row].*gutter.figure);
    ImGui::SetTooltip("%s", words.c_str());
  }
}

}  // namespace app::widgets
