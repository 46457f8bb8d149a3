#include "app/ui/panels/laboratory/laboratory_curve.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/hit_area.hpp"
#include "app/ui/widgets/number_text.hpp"

namespace app::panels {
namespace {

using widgets::Align;

constexpr double most_masks = 1024;

/// Logarithmic axes: masks from 1 to 1024, distances over three or more decades.
struct Axes {
  ImVec2 min, max;
  double top, bottom;  // powers of ten
  float x(double masks) const {
    return min.x + (max.x - min.x) * static_cast<float>(std::log(masks) / std::log(most_masks));
  }
  float y(double distance) const {
    const double share = (top - std::log10(std::max(distance, std::pow(10.0, bottom)))) / (top - bottom);
    return min.y + (max.y - min.y) * static_cast<float>(std::clamp(share, 0.0, 1.0));
  }
};

Axes axes_for(const Frame& frame, const Laboratory& lab, ImVec2 at, ImVec2 size) {
  double largest = 0;
  for (const double d : lab.distances) largest = std::max(largest, d);
  const double top = largest > 0 ? std::ceil(std::log10(largest) - 1e-9) : 0;
  return {{at.x + frame.metrics.px(66), at.y},
          {at.x + size.x, at.y + size.y - frame.metrics.px(22)},
          top,
          top - 2};
}

void draw_grid(const Frame& frame, const Axes& a) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(a.min, a.max, packed(frame.palette.ground.panel));
  const ImU32 line = packed(frame.palette.line);
  for (const double n : std::array<double, 6>{1, 4, 16, 64, 256, 1024}) {
    const float x = std::round(a.x(n));
    list->AddRectFilled({x, a.min.y}, {x + 1, a.max.y}, line);
    widgets::draw_text(frame.fonts.mono12, {x, a.max.y + frame.metrics.px(11)}, Align::middle,
                       packed(frame.palette.dim), std::to_string(static_cast<int>(n)));
  }
  for (double power = a.bottom; power <= a.top + 0.5; ++power) {
    const float y = std::round(a.y(std::pow(10.0, power)));
    list->AddRectFilled({a.min.x, y}, {a.max.x, y + 1}, line);
    const int decimals = std::max(0, static_cast<int>(-power));
    widgets::draw_text(frame.fonts.mono12, {a.min.x - frame.metrics.px(6), y}, Align::right_middle,
                       packed(frame.palette.dim),
                       decimals > 5 ? widgets::scientific(std::pow(10.0, power))
                                    : widgets::fixed(std::pow(10.0, power), decimals));
  }
}

/// Where 1/√N would lead from the first distance.
void draw_expected(const Frame& frame, const Axes& a, double first) {
  ImGui::GetWindowDrawList()->AddLine({a.x(1), a.y(first)},
                                      {a.x(most_masks), a.y(first / std::sqrt(most_masks))},
                                      packed(frame.palette.faint));
  widgets::draw_text(frame.fonts.sans12, {a.x(8), a.y(first / std::sqrt(8.0)) - frame.metrics.px(10)},
                     Align::left_middle, packed(frame.palette.faint), "1/√N");
}

void choose_masks(const Frame& frame, const Axes& a) {
  ImGui::SetCursorScreenPos(a.min);
  widgets::hit_area("laboratory/curve", {a.max.x - a.min.x, a.max.y - a.min.y});
  frame.landmarks.mark_item("laboratory/curve");
  if (!ImGui::IsItemActive()) return;
  const double share = (ImGui::GetIO().MousePos.x - a.min.x) / (a.max.x - a.min.x);
  const double masks = std::round(std::pow(most_masks, std::clamp(share, 0.0, 1.0)));
  frame.commands.look([n = static_cast<std::size_t>(masks)](View& v) { v.look.laboratory_masks = n; });
}

}  // namespace

void draw_laboratory_curve(const Frame& frame, ImVec2 at, ImVec2 size) {
  const Laboratory& lab = *frame.work.laboratory;
  const Axes a = axes_for(frame, lab, at, size);
  draw_grid(frame, a);
  choose_masks(frame, a);
  const std::vector<double>& distances = lab.distances;
  if (distances.empty()) return;
  if (distances.front() > 0) draw_expected(frame, a, distances.front());
  ImDrawList* list = ImGui::GetWindowDrawList();
  std::vector<ImVec2> points;
  for (std::size_t k = 0; k < distances.size(); ++k)
    points.emplace_back(a.x(static_cast<double>(k + 1)), a.y(distances[k]));
  list->AddPolyline(points.data(), static_cast<int>(points.size()), packed(frame.palette.accent), 0, 1.5f);
  const std::size_t n = std::min(frame.shown.look.laboratory_masks, distances.size());
  const ImVec2 chosen = points[n - 1];
  list->AddRectFilled({std::round(chosen.x), a.min.y}, {std::round(chosen.x) + 1, a.max.y},
                      packed(frame.palette.selection));
  list->AddCircleFilled(chosen, frame.metrics.px(4), packed(frame.palette.selection));
  const bool left = chosen.x > (a.min.x + a.max.x) / 2;
  widgets::draw_text(frame.fonts.mono12,
                     {chosen.x + frame.metrics.px(left ? -10 : 10), chosen.y - frame.metrics.px(12)},
                     left ? Align::right_middle : Align::left_middle, packed(frame.palette.text),
                     widgets::fixed(distances[n - 1], 4));
}

std::size_t drawn_ticks(const Laboratory& lab, std::size_t n_masks) {
  constexpr std::size_t most_ticks = 6000;  // more would be drawn slowly and seen as one
  return std::min({n_masks, lab.count(), std::max<std::size_t>(1, most_ticks / lab.n_rows())});
}

void draw_row_sums(const Frame& frame, ImVec2 at, ImVec2 size, std::size_t n_masks) {
  const Laboratory& lab = *frame.work.laboratory;
  const std::size_t rows = lab.n_rows(), n = std::min(n_masks, lab.count());
  if (n == 0) return;
  double largest = 2;
  for (std::size_t k = 0; k < n; ++k) largest = std::max(largest, lab.row_sums[k].max());
  const float from = at.x + frame.metrics.px(24), to = at.x + size.x - frame.metrics.px(52);
  const auto x = [&](double sum) {
    return from + (to - from) * static_cast<float>(std::clamp(sum / largest, 0.0, 1.0));
  };
  ImDrawList* list = ImGui::GetWindowDrawList();
  for (double tick = 0; tick <= largest; tick += largest > 8 ? std::ceil(largest / 8) : 1) {
    list->AddRectFilled({std::round(x(tick)), at.y}, {std::round(x(tick)) + 1, at.y + size.y},
                        packed(frame.palette.line));
    widgets::draw_text(frame.fonts.mono12, {x(tick), at.y - frame.metrics.px(9)}, Align::middle,
                       packed(frame.palette.faint), widgets::fixed(tick, 0));
  }
  widgets::draw_text(frame.fonts.mono12, {at.x + size.x, at.y - frame.metrics.px(9)}, Align::right_middle,
                     packed(frame.palette.faint), "mean");
  const float pitch = size.y / static_cast<float>(rows), half = std::max(1.0f, pitch * 0.32f);
  const std::size_t step = widgets::label_step(pitch, frame.metrics.px(14));
  const std::size_t ticks = drawn_ticks(lab, n);
  const float strength = std::clamp(3.0f / std::sqrt(static_cast<float>(n)), 0.08f, 0.8f);
  for (std::size_t i = 0; i < rows; ++i) {
    const float middle = at.y + (static_cast<float>(i) + 0.5f) * pitch;
    double sum = 0;
    for (std::size_t k = 0; k < n; ++k) {
      const double s = lab.row_sums[k][i];
      sum += s;
      if (k < ticks)
        list->AddRectFilled({std::round(x(s)), middle - half}, {std::round(x(s)) + 2, middle + half},
                            packed(frame.palette.accent, strength));
    }
    const double mean = sum / static_cast<double>(n);
    list->AddRectFilled({std::round(x(mean)) - 1, middle - half - 1},
                        {std::round(x(mean)) + 2, middle + half + 1}, packed(frame.palette.selection));
    if (i % step != 0) continue;
    widgets::draw_text(frame.fonts.mono12, {at.x + frame.metrics.px(10), middle}, Align::right_middle,
                       packed(frame.palette.faint), std::to_string(i));
    widgets::draw_text(frame.fonts.mono13, {at.x + size.x, middle}, Align::right_middle,
                       packed(frame.palette.text), widgets::fixed(mean, 3));
  }
}

}  // namespace app::panels
