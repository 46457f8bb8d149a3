#include "app/ui/panels/stages/turning_curve.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/hit_area.hpp"
#include "app/ui/widgets/number_text.hpp"

namespace app::panels {
namespace {

using widgets::Align;

/// Distances across, scores up.
struct Plot {
  ImVec2 min, max;
  double furthest, low, high;
  ImVec2 at(double distance, double score) const {
    const double x = distance / furthest, y = (score - low) / (high - low);
    return {min.x + (max.x - min.x) * static_cast<float>(x), max.y - (max.y - min.y) * static_cast<float>(y)};
  }
};

void draw_plot_frame(const Frame& frame, const Plot& plot) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(plot.min, plot.max, packed(frame.palette.ground.back));
  for (const double score : {plot.low, 0.0, plot.high}) {
    const float y = std::round(plot.at(0, score).y);
    list->AddRectFilled({plot.min.x, y}, {plot.max.x, y + 1}, packed(frame.palette.line));
    widgets::draw_text(frame.fonts.mono12, {plot.min.x - frame.metrics.px(6), y}, Align::right_middle,
                       packed(frame.palette.dim), score == 0 ? "0" : widgets::fixed(score, 2));
  }
  for (int quarter = 0; quarter <= 4; ++quarter) {
    const double distance = plot.furthest * quarter / 4;
    widgets::draw_text(frame.fonts.mono12, {plot.at(distance, 0).x, plot.max.y + frame.metrics.px(11)},
                       Align::middle, packed(frame.palette.dim),
                       widgets::fixed(distance, distance == std::floor(distance) ? 0 : 1));
  }
}

}  // namespace

std::optional<double> draw_turning_curve(const Frame& frame, ImVec2 at, ImVec2 size, double furthest,
                                         double distance, const std::function<double(double)>& score) {
  constexpr double steps_of_one = 8, most_steps = 2048;
  std::vector<double> scores;
  const int steps = static_cast<int>(std::min(furthest * steps_of_one, most_steps));
  double low = 0, high = 0;
  for (int k = 0; k <= steps; ++k) {
    scores.push_back(score(furthest * k / steps));
    if (!std::isfinite(scores.back())) return std::nullopt;
    low = std::min(low, scores.back()), high = std::max(high, scores.back());
  }
  if (low == high) high = 1;
  const float left = frame.metrics.px(52);
  const Plot plot{
      {at.x + left, at.y}, {at.x + size.x, at.y + size.y - frame.metrics.px(20)}, furthest, low, high};
  draw_plot_frame(frame, plot);
  ImDrawList* list = ImGui::GetWindowDrawList();
  std::vector<ImVec2> points;
  for (int k = 0; k <= steps; ++k)
    points.push_back(plot.at(furthest * k / steps, scores[static_cast<std::size_t>(k)]));
  list->AddPolyline(points.data(), static_cast<int>(points.size()), packed(frame.palette.dim), 0, 1.5f);
  if (furthest <= 64)
    for (double d = 0; d <= furthest; ++d)
      list->AddCircleFilled(plot.at(d, score(d)), frame.metrics.px(2), packed(frame.palette.text));
  if (distance >= 0 && distance <= furthest) {
    const ImVec2 now = plot.at(distance, score(distance));
    list->AddRectFilled({std::round(now.x), plot.min.y}, {std::round(now.x) + 1, plot.max.y},
                        packed(frame.palette.selection));
    list->AddCircleFilled(now, frame.metrics.px(5), packed(frame.palette.selection));
  }
  platform::move_to(plot.min);
  widgets::hit_area("positions/curve", {plot.max.x - plot.min.x, plot.max.y - plot.min.y});
  frame.landmarks.mark_item("positions/curve");
  if (!ImGui::IsItemActive()) return std::nullopt;
  const double share = (ImGui::GetMousePos().x - plot.min.x) / (plot.max.x - plot.min.x);
  return std::round(std::clamp(share, 0.0, 1.0) * furthest);
}

}  // namespace app::panels
