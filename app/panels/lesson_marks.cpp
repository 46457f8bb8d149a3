#include "app/panels/lesson_marks.hpp"

#include <algorithm>

#include "app/widgets/drawing.hpp"

namespace app::panels {
namespace {

constexpr float cover = 0.58f;

bool is_within(const Landmarks::Rect& rect, ImVec2 min, ImVec2 max) {
  const ImVec2 c = rect.centre();
  return c.x >= min.x && c.x < max.x && c.y >= min.y && c.y < max.y;
}

bool is_focus(const Frame& frame, std::string_view name) {
  const auto& focus = frame.lesson->shown().focus;
  return std::find(focus.begin(), focus.end(), name) != focus.end();
}

/// Stages that the step does not speak of recede, if it speaks of any.
void cover_other_stages(const Frame& frame) {
  constexpr std::string_view block = "block/";
  const auto& focus = frame.lesson->shown().focus;
  if (std::none_of(focus.begin(), focus.end(),
                   [](std::string_view name) { return name.starts_with("strip/"); }))
    return;
  for (const auto& [name, rect] : frame.landmarks.all())
    if (name.starts_with(block) && !is_focus(frame, "strip/" + name.substr(block.size())))
      ImGui::GetWindowDrawList()->AddRectFilled(rect.min, rect.max, packed(frame.palette.background, cover));
}

/// Brings the first stage that the step speaks of into view, once.
void move_to_focus(const Frame& frame) {
  if (!frame.view.lesson || frame.view.lesson->arrived) return;
  frame.commands.look([](View& v) {
    if (v.lesson) v.lesson->arrived = true;
  });
  float top = ImGui::GetWindowPos().y + ImGui::GetWindowHeight() * 100, bottom = -top;
  for (const std::string_view name : frame.lesson->shown().focus) {
    if (!name.starts_with("strip/")) continue;
    const auto rect = frame.landmarks.find("block/" + std::string(name.substr(6)));
    if (!rect) continue;
    top = std::min(top, rect->min.y), bottom = std::max(bottom, rect->max.y);
  }
  if (bottom < top) return;
  // All of it when it fits, else its beginning; no further than needed.
  const float margin = frame.metrics.px(24), view_top = ImGui::GetWindowPos().y,
              view_bottom = view_top + ImGui::GetWindowHeight();
  const float down = bottom + margin - view_bottom, up = top - margin - view_top;
  if (up < 0 || down > 0) ImGui::SetScrollY(ImGui::GetScrollY() + (up < 0 ? up : std::min(down, up)));
}

}  // namespace

void draw_lesson_marks(const Frame& frame, std::string_view panel) {
  if (!frame.lesson) return;
  if (panel == "stages") {
    cover_other_stages(frame);
    move_to_focus(frame);
  }
  const ImVec2 min = ImGui::GetWindowPos(),
               max(min.x + ImGui::GetWindowWidth(), min.y + ImGui::GetWindowHeight());
  const float margin = frame.metrics.px(3);
  for (const std::string name : frame.lesson->shown().focus) {
    const auto rect = frame.landmarks.find(name);
    if (!rect || !is_within(*rect, min, max)) continue;
    widgets::outline(ImGui::GetWindowDrawList(), {rect->min.x - margin, rect->min.y - margin},
                     {rect->max.x + margin, rect->max.y + margin}, packed(frame.palette.accent), 2);
  }
}

}  // namespace app::panels
