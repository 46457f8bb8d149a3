#include "app/ui/panels/stages/profiles.hpp"

#include <algorithm>
#include <cmath>

#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/heatmap/color_bar.hpp"
#include "app/ui/widgets/heatmap/heatmap_view.hpp"

namespace app::panels {
namespace {

using widgets::Align;

/// The cell whose row and column are shown.
std::optional<CellRef> chosen_cell(const Frame& frame, const core::attention::StageInfo& stage) {
  for (const auto& cell : {frame.displayed.selection.pinned, frame.displayed.selection.hovered})
    if (cell && cell->stage == stage.stage)
      return cell;  // of any head: the same row and column are looked at in all
  return std::nullopt;
}

/// A line of numbers as bars along a side of the picture.
struct Profile {
  const Frame& frame;
  ImVec2 min, max;  // of its ground
  bool upright;     // numbers run down, bars to the right
  double from, to;  // what is shown of the numbers, in cells
  ValueRange extent;

  float along(double cell) const {
    const float begin = upright ? min.y : min.x, end = upright ? max.y : max.x;
    return begin + (end - begin) * static_cast<float>((cell - from) / (to - from));
  }
  /// How far a number reaches from the side where the bars begin, 0 … 1.
  float share(double v) const {
    const double low = std::min(0.0, extent.smallest), high = std::max(0.0, extent.largest);
    return high > low ? static_cast<float>((v - low) / (high - low)) : 0;
  }
  void bar(double first, double last, double v, ImU32 color) const {
    const float a = std::round(along(first)),
                b = std::max(a + 1, std::round(along(last)) - (along(last) - along(first) >= 4 ? 1 : 0));
    const float zero = share(0), end = share(v), low = std::min(zero, end), high = std::max(zero, end);
    ImDrawList* list = ImGui::GetWindowDrawList();
    if (upright) {
      const float w = max.x - min.x;
      list->AddRectFilled({min.x + w * low, a}, {std::max(min.x + w * high, min.x + w * low + 1), b}, color);
    } else {
      const float h = max.y - min.y;
      list->AddRectFilled({a, max.y - h * high}, {b, std::min(max.y - h * low, max.y)}, color);
    }
  }
};

/// One bar a cell, or a pixel when there are more cells than pixels: then the one farthest from 0.
template <class NumberAt>
void draw_bars(const Profile& p, std::size_t count, std::size_t chosen, NumberAt number) {
  const float length = p.upright ? p.max.y - p.min.y : p.max.x - p.min.x;
  const double a_pixel = std::max(1.0, std::ceil((p.to - p.from) / static_cast<double>(length)));
  const auto step = static_cast<std::size_t>(a_pixel);
  const ImU32 plain = packed(p.frame.palette.faint), bright = packed(p.frame.palette.selection);
  const auto first = static_cast<std::size_t>(p.from) / step * step;
  const auto end = std::min(count, static_cast<std::size_t>(std::ceil(p.to)));
  ImGui::GetWindowDrawList()->PushClipRect(p.min, p.max, true);
  for (std::size_t k = first; k < end; k += step) {
    double v = 0;
    for (std::size_t i = k; i < std::min(k + step, count); ++i)
      if (std::isfinite(number(i)) && std::abs(number(i)) > std::abs(v)) v = number(i);
    const bool is_chosen = chosen >= k && chosen < k + step;
    if (v != 0 || is_chosen)
      p.bar(static_cast<double>(k), static_cast<double>(k + step), v, is_chosen ? bright : plain);
  }
  ImGui::GetWindowDrawList()->PopClipRect();
}

void draw_row(const Frame& frame, const core::attention::StageMatrix& stage, const PictureFrame& picture,
              float top, float room, const CellRef& cell) {
  const arma::rowvec numbers = stage.row(cell.row);
  const ValueRange extent = value_range(numbers);
  const Profile p{frame, {picture.min.x, top}, {picture.max.x, top + room},
                  false, picture.part.left,    picture.part.right,
                  extent};
  ImGui::GetWindowDrawList()->AddRectFilled(p.min, p.max, packed(frame.palette.ground.panel));
  draw_bars(p, numbers.n_elem, cell.column, [&](std::size_t j) { return numbers[j]; });
  const float right = picture.min.x - frame.metrics.px(6);
  const auto text = [&](float y, Rgb color, const std::string& words) {
    widgets::draw_text(frame.fonts.mono12, {right, y}, Align::right_middle, packed(color), words);
  };
  text(top + frame.metrics.px(6), frame.palette.faint, widgets::end_text(std::max(0.0, extent.largest)));
  text(top + room / 2, frame.palette.dim, "row " + std::to_string(cell.row));
  text(top + room - frame.metrics.px(5), frame.palette.faint,
       widgets::end_text(std::min(0.0, extent.smallest)));
  frame.landmarks.mark("large/row", p.min, p.max);
}

void draw_column(const Frame& frame, const core::attention::StageMatrix& stage, const PictureFrame& picture,
                 float left, float room, const CellRef& cell) {
  arma::vec numbers(stage.n_rows());
  for (std::size_t i = 0; i < numbers.n_elem; ++i) numbers[i] = stage(i, cell.column);
  const ValueRange extent = value_range(numbers);
  const Profile p{frame, {left, picture.min.y}, {left + room, picture.max.y},
                  true,  picture.part.top,      picture.part.bottom,
                  extent};
  ImGui::GetWindowDrawList()->AddRectFilled(p.min, p.max, packed(frame.palette.ground.panel));
  draw_bars(p, numbers.n_elem, cell.row, [&](std::size_t i) { return numbers[i]; });
  const float y = picture.min.y - frame.metrics.px(9);
  widgets::draw_text(frame.fonts.mono12, {left, y}, Align::left_middle, packed(frame.palette.faint),
                     widgets::end_text(std::min(0.0, extent.smallest)));
  widgets::draw_text(frame.fonts.mono12, {left + room, y}, Align::right_middle, packed(frame.palette.faint),
                     widgets::end_text(std::max(0.0, extent.largest)));
  widgets::draw_text(frame.fonts.mono12, {left, y - frame.metrics.px(15)}, Align::left_middle,
                     packed(frame.palette.dim), "column " + std::to_string(cell.column));
  frame.landmarks.mark("large/column", p.min, p.max);
}

/// All of the map in a corner, with a frame around what the large picture shows of it.
void draw_overview(const Frame& frame, const core::attention::StageInfo& stage,
                   const core::attention::StageMatrix& numbers, const CellWindow& part, ImVec2 at,
                   float room) {
  const CellWindow all{0, 0, static_cast<double>(numbers.n_cols()), static_cast<double>(numbers.n_rows())};
  if (part == all) return;
  widgets::Heatmap map;
  map.place = "large/overview";
  map.stage = stage.stage;
  map.head = frame.displayed.look.head;
  map.width = map.height = std::max(1, static_cast<int>(room));
  map.show_numbers = false;
  map.whole = true;
  widgets::draw_picture(frame, map, at);
  const auto x = [&](double column) { return at.x + room * static_cast<float>(column / all.right); };
  const auto y = [&](double row) { return at.y + room * static_cast<float>(row / all.bottom); };
  widgets::outline(ImGui::GetWindowDrawList(), {std::round(x(part.left)) - 1, std::round(y(part.top)) - 1},
                   {std::round(x(part.right)) + 1, std::round(y(part.bottom)) + 1},
                   packed(frame.palette.selection), 1);
  frame.landmarks.mark("large/overview", at, {at.x + room, at.y + room});
}

}  // namespace

void draw_profiles(const Frame& frame, const core::attention::StageInfo& stage,
                   const core::attention::StageMatrix& numbers, const PictureFrame& picture, ImVec2 at,
                   ImVec2 room) {
  draw_overview(frame, stage, numbers, picture.part, at, std::min(room.x, room.y));
  if (const auto cell = chosen_cell(frame, stage)) {
    draw_row(frame, numbers, picture, at.y, room.y, *cell);
    draw_column(frame, numbers, picture, at.x, room.x, *cell);
    return;
  }
  widgets::draw_text(frame.fonts.sans13, {picture.min.x, at.y + frame.metrics.px(10)}, Align::left_middle,
                     packed(frame.palette.faint),
                     "Hover over a cell or pin one to see its row here and its column at the right.");
}

}  // namespace app::panels
