#include "app/widgets/colour_bar.hpp"

#include <algorithm>
#include <cmath>

#include "app/widgets/drawing.hpp"
#include "app/widgets/number_text.hpp"

namespace app::widgets {
namespace {

using core::attention::Colouring;

constexpr int steps = 64;

render::ColourMap map_of(Colouring c) {
  return c == Colouring::weights ? render::ColourMap::weights : render::ColourMap::values;
}

/// The end of a range as it stands beside the bar: whole ends bare, others with as many decimals as say something.
std::string end_text(double value) {
  const double size = std::abs(value);
  if (size == 0) return "0";
  if (size >= 1e5 || size < 1e-4) return scientific(value);
  return fixed(value, size >= 1000 ? 0 : size >= 100 ? 1 : size >= 0.1 ? 2 : 4);
}

void draw_legend(const Frame& frame, const Heatmap& map, ImVec2 picture_min, ImVec2 picture_max) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const auto swatch = [&](float x, float y, double t) {
    const float side = frame.metrics.px(10);
    list->AddRectFilled({x, y - side / 2}, {x + side, y + side / 2}, packed(render::colour_at(render::ColourMap::mask, frame.palette.dark, t)));
    return x + side + frame.metrics.px(5);
  };
  const bool is_mask = map.stage == Stage::mask;
  const double factor = core::attention::top_of_range(frame.model, map.stage);
  const std::string kept = is_mask ? "visible" : "kept, × " + fixed(factor, 2), dropped = is_mask ? "hidden" : "dropped, × 0";
  const float y = std::round(picture_max.y + frame.metrics.px(12));
  float x = swatch(picture_min.x, y, 1);
  draw_text(frame.fonts.sans12, {x, y}, Align::left_middle, packed(frame.palette.faint), kept);
  x += text_width(frame.fonts.sans12, kept) + frame.metrics.px(12);
  const ImU32 ink = packed(readable_on(render::colour_at(render::ColourMap::mask, frame.palette.dark, 0)));
  const float left = x;
  x = swatch(x, y, 0);
  if (!is_mask) {
    const float r = frame.metrics.px(3);
    const ImVec2 m{left + frame.metrics.px(5), y};
    list->AddLine({m.x - r, m.y - r}, {m.x + r, m.y + r}, ink, 1.5f);
    list->AddLine({m.x - r, m.y + r}, {m.x + r, m.y - r}, ink, 1.5f);
  }
  draw_text(frame.fonts.sans12, {x, y}, Align::left_middle, packed(frame.palette.faint), dropped);
}

}  // namespace

void draw_bar(const Frame& frame, const Heatmap& map, Ends ends, ImVec2 picture_min, ImVec2 picture_max) {
  const Colouring colouring = colouring_of(map);
  if (colouring == Colouring::mask) return draw_legend(frame, map, picture_min, picture_max);
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImU32 faint = packed(frame.palette.faint), dim = packed(frame.palette.dim);
  const float thick = frame.metrics.px(6), gap = frame.metrics.px(8);
  const Extent extent = map.other && map.other->extent ? *map.other->extent
                        : map.other ? extent_of(*map.other->numbers)
                                  : frame.extents.of(frame.trace, frame.version, map.stage, map.head);
  const auto share = [&](double v) { return ends.high > ends.low ? static_cast<float>(std::clamp((v - ends.low) / (ends.high - ends.low), 0.0, 1.0)) : 0.5f; };
  const auto colour = [&](int k) { return packed(render::colour_at(map_of(colouring), frame.palette.dark, (k + 0.5) / steps)); };
  const float mark = frame.metrics.px(3);
  if (map.bar_beside) {
    const float x = picture_max.x + gap, height = picture_max.y - 1 - picture_min.y, bottom = picture_max.y - 1;
    for (int k = 0; k < steps; ++k)
      list->AddRectFilled({x, std::round(bottom - height * (k + 1) / steps)}, {x + thick, std::round(bottom - height * k / steps)}, colour(k));
    const float text_x = x + thick + frame.metrics.px(5), half = frame.metrics.px(6);
    draw_text(frame.fonts.mono12, {text_x, picture_min.y + half - 2}, Align::left_middle, dim, end_text(ends.high));
    draw_text(frame.fonts.mono12, {text_x, bottom - half + 3}, Align::left_middle, dim, end_text(ends.low));
    for (const double v : {extent.smallest, extent.largest}) {
      const float y = std::round(bottom - height * share(v));
      list->AddTriangleFilled({x - 1, y}, {x - 1 - mark, y - mark}, {x - 1 - mark, y + mark}, faint);
    }
    return;
  }
  const std::string low = end_text(ends.low), high = end_text(ends.high);
  const float high_room = text_width(frame.fonts.mono12, high) + frame.metrics.px(5);
  const float y = picture_max.y + gap, width = std::max(picture_max.x - 1 - picture_min.x - high_room, frame.metrics.px(24));
  for (int k = 0; k < steps; ++k)
    list->AddRectFilled({std::round(picture_min.x + width * k / steps), y}, {std::round(picture_min.x + width * (k + 1) / steps), y + thick}, colour(k));
  draw_text(frame.fonts.mono12, {picture_min.x - frame.metrics.px(5), y + thick / 2}, Align::right_middle, dim, low);
  draw_text(frame.fonts.mono12, {picture_min.x + width + frame.metrics.px(5), y + thick / 2}, Align::left_middle, dim, high);
  for (const double v : {extent.smallest, extent.largest}) {
    const float x = std::round(picture_min.x + width * share(v));
    list->AddTriangleFilled({x, y + thick + 1}, {x - mark, y + thick + 1 + mark}, {x + mark, y + thick + 1 + mark}, faint);
  }
}

}  // namespace app::widgets
