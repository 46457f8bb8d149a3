#include "app/ui/panels/laboratory/laboratory_curve.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/hit_area.hpp"
#include "app/ui/widgets/number_text.hpp"

namespace app::panels {
namespace {

using widgets::Align;

constexpr double most_masks = 1024;

/// Logarithmic axes: masks from 1 to 1024, distances over two to five decades.
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
  double largest = 0, smallest = 0;
  for (const double d : lab.distances) {
    largest = std::max(largest, d);
    if (d > 0 && (smallest == 0 || d < smallest)) smallest = d;
  }
  const double top = largest > 0 ? std::ceil(std::log10(largest) - 1e-9) : 0;
  const double least = smallest > 0 ? std::floor(std::log10(smallest)) : top;
  return {{at.x + frame.metrics.px(66), at.y},
          {at.x + size.x, at.y + size.y - frame.metrics.px(22)},
          top,
          std::clamp(least, top - 5, top - 2)};
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

/// Puts words where the curve leaves room for them: at the first of the places, or at the one that it crosses
/// least.
void draw_aside(const Frame& frame, const std::vector<ImVec2>& curve, std::span<const ImVec2> middles,
                ImFont* font, Rgb ink, const std::string& words) {
  const float half_width = widgets::text_width(font, words) / 2 + frame.metrics.px(3),
              half_height = platform::font_size(font) / 2 + frame.metrics.px(1);
  const auto crossed = [&](ImVec2 at) {
    return std::ranges::count_if(curve, [&](ImVec2 p) {
      return std::abs(p.x - at.x) < half_width && std::abs(p.y - at.y) < half_height;
    });
  };
  const ImVec2 best = *std::ranges::min_element(middles, {}, crossed);
  widgets::draw_text(font, best, Align::middle, packed(ink), words);
}

/// Where 1/√N would lead from the first distance.
void draw_expected(const Frame& frame, const Axes& a, const std::vector<ImVec2>& curve, double first) {
  ImGui::GetWindowDrawList()->AddLine({a.x(1), a.y(first)},
                                      {a.x(most_masks), a.y(first / std::sqrt(most_masks))},
                                      packed(frame.palette.faint));
  std::vector<ImVec2> places;
  for (const double n : {6.0, 3.0, 24.0, 96.0, 400.0})
    for (const float side : {-1.0f, 1.0f})
      places.emplace_back(a.x(n) - side * frame.metrics.px(8),
                          a.y(first / std::sqrt(n)) + side * frame.metrics.px(14));
  std::erase_if(places, [&](ImVec2 p) { return p.y > a.max.y - frame.metrics.px(10); });
  draw_aside(frame, curve, places, frame.fonts.sans12, frame.palette.dim, "1/√N");
}

void choose_masks(const Frame& frame, const Axes& a) {
  platform::move_to(a.min);
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
  ImDrawList* list = ImGui::GetWindowDrawList();
  std::vector<ImVec2> points;
  for (std::size_t k = 0; k < distances.size(); ++k)
    points.emplace_back(a.x(static_cast<double>(k + 1)), a.y(distances[k]));
  std::vector<ImVec2> dense;  // of long steps also what lies between
  for (std::size_t k = 0; k + 1 < points.size(); ++k) {
    const int n = 1 + static_cast<int>((points[k + 1].x - points[k].x) / 4);
    for (int i = 0; i < n; ++i) {
      const float t = static_cast<float>(i) / static_cast<float>(n);
      dense.emplace_back(points[k].x + (points[k + 1].x - points[k].x) * t,
                         points[k].y + (points[k + 1].y - points[k].y) * t);
    }
  }
  if (distances.front() > 0) draw_expected(frame, a, dense, distances.front());
  list->AddPolyline(points.data(), static_cast<int>(points.size()), packed(frame.palette.accent), 0, 1.5f);
  const std::size_t n = std::min(frame.shown.look.laboratory_masks, distances.size());
  const ImVec2 chosen = points[n - 1];
  list->AddRectFilled({std::round(chosen.x), a.min.y}, {std::round(chosen.x) + 1, a.max.y},
                      packed(frame.palette.selection));
  list->AddCircleFilled(chosen, frame.metrics.px(4), packed(frame.palette.selection));
  const std::string number = widgets::fixed(distances[n - 1], 4);
  const float away = widgets::text_width(frame.fonts.mono12, number) / 2 + frame.metrics.px(9),
              aside = chosen.x > (a.min.x + a.max.x) / 2 ? -away : away;
  std::vector<ImVec2> places;
  for (const float x : {aside, -aside})
    for (const float y : {-16.0f, 16.0f, -32.0f, 32.0f})
      places.emplace_back(chosen.x + x, chosen.y + frame.metrics.px(y));
  std::erase_if(places, [&](ImVec2 p) {
    return p.y < a.min.y + frame.metrics.px(8) || p.y > a.max.y - frame.metrics.px(8) ||
           p.x - away < a.min.x || p.x + away > a.max.x;
  });
  if (places.empty()) places.emplace_back(chosen.x + aside, chosen.y);
  draw_aside(frame, dense, places, frame.fonts.mono12, frame.palette.text, number);
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
  const float pitch = size.y / static_cast<float>(rows);
  widgets::draw_text(
      frame.fonts.mono12,
      {at.x + size.x, std::min(at.y - frame.metrics.px(9), at.y + pitch / 2 - frame.metrics.px(15))},
      Align::right_middle, packed(frame.palette.faint), "mean");
  const float half = std::max(1.0f, pitch * 0.32f);
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
