#include "app/ui/panels/lessons/lesson_marks.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "app/ui/widgets/drawing.hpp"

namespace app::panels {
namespace {

constexpr float cover = 0.58f;

bool is_within(const Landmarks::Rect& rect, ImVec2 min, ImVec2 max) {
  const ImVec2 c = rect.centre();
  return c.x >= min.x && c.x < max.x && c.y >= min.y && c.y < max.y;
}

bool is_stage(std::string_view name) {
  return name.starts_with("strip/");
}

bool is_focus(const Frame& frame, std::string_view name) {
  const auto& focus = frame.lesson->shown().focus;
  return std::find(focus.begin(), focus.end(), name) != focus.end();
}

/// Stages that the step does not speak of recede, if it speaks of any.
void cover_other_stages(const Frame& frame) {
  constexpr std::string_view block = "block/";
  const auto& focus = frame.lesson->shown().focus;
  if (std::none_of(focus.begin(), focus.end(), is_stage)) return;
  const auto is_spoken_of = [&](const std::string& name) {
    return is_focus(frame, "strip/" + name.substr(block.size()));
  };
  for (const auto& [name, rect] : frame.landmarks.all()) {
    if (!name.starts_with(block) || is_spoken_of(name)) continue;
    float left = rect.min.x;
    for (const auto& [other, seen] : frame.landmarks.all())  // a block may reach under its left neighbour
      if (other.starts_with(block) && is_spoken_of(other) && seen.min.y < rect.max.y &&
          seen.max.y > rect.min.y && seen.min.x < rect.min.x)
        left = std::max(left, seen.max.x);
    ImGui::GetWindowDrawList()->AddRectFilled({left, rect.min.y}, rect.max,
                                              packed(frame.palette.ground.back, cover));
  }
}

/// How far the strip has to move down to show the stages that the step speaks of; negative is up.
float way_to_focus(const Frame& frame) {
  float top = std::numeric_limits<float>::max(), bottom = std::numeric_limits<float>::lowest();
  for (const std::string_view name : frame.lesson->shown().focus) {
    if (!is_stage(name)) continue;
    const auto rect = frame.landmarks.find("block/" + std::string(name.substr(6)));
    if (!rect) continue;
    top = std::min(top, rect->min.y), bottom = std::max(bottom, rect->max.y);
  }
  if (bottom < top) return 0;
  // All of it when it fits, else its beginning; no further than needed.
  const float margin = frame.metrics.px(24), view_top = ImGui::GetWindowPos().y,
              view_bottom = view_top + ImGui::GetWindowHeight();
  const float down = bottom + margin - view_bottom, up = top - margin - view_top;
  return up < 0 ? up : std::clamp(down, 0.0f, up);
}

/// Brings the stages that the step speaks of into view, once: the first frames of a step may still change the
/// layout.
void move_to_focus(const Frame& frame) {
  if (!frame.shown.selection.lesson || frame.shown.selection.lesson->arrived) return;
  const float before = ImGui::GetScrollY();
  const float after = std::clamp(before + way_to_focus(frame), 0.0f, ImGui::GetScrollMaxY());
  ImGui::SetScrollY(after);
  if (std::abs(after - before) < 1 && frame.shown.selection.lesson->frames_shown > 0)
    frame.commands.look([](View& v) {
      if (v.selection.lesson) v.selection.lesson->arrived = true;
    });
  else
    frame.commands.look([](View& v) {
      if (v.selection.lesson) ++v.selection.lesson->frames_shown;
    });
}

bool is_of_model(std::string_view name) {
  return name.starts_with("model/");
}

/// Brings the field of MODEL that the step speaks of into view as the step begins.
void move_model_to_focus(const Frame& frame) {
  const auto& lesson = frame.shown.selection.lesson;
  if (!lesson || lesson->arrived || frame.shown.look.tab != Tab::stages) return;
  const float top = ImGui::GetWindowPos().y, bottom = top + ImGui::GetWindowHeight(),
              margin = frame.metrics.px(8);
  for (const std::string_view name : frame.lesson->shown().focus) {
    const auto rect = is_of_model(name) ? frame.landmarks.find(std::string(name)) : std::nullopt;
    if (!rect) continue;
    const float down = rect->max.y + margin - bottom, up = rect->min.y - margin - top;
    if (down > 0 || up < 0) ImGui::SetScrollY(ImGui::GetScrollY() + (up < 0 ? up : std::min(down, up)));
    return;
  }
}

/// Whether the step speaks of the mask, and this stage shows what the mask hides.
bool shows_hidden(const Frame& frame, std::string_view name) {
  const auto& words = frame.lesson->shown().words;
  const bool speaks = std::ranges::any_of(words, [](std::string_view w) { return w == "mask" || w == "−∞"; });
  const auto* stage = speaks ? core::attention::find_stage(name.substr(6)) : nullptr;
  if (!stage || !stage->present(frame.shown.model) || stage->columns != core::attention::Columns::tokens)
    return false;
  const bool is_before = stage->stage < Stage::mask;
  constexpr std::size_t most = 1024;
  const auto& mask = frame.shown.trace.mask;
  return !is_before && mask.n_rows() * mask.n_cols() <= most && arma::accu(*mask == 0) > 0;
}

/// A line around what is hidden: the staircase of a causal mask.
void draw_hidden_edge(const Frame& frame, const Landmarks::Rect& rect) {
  const arma::mat& mask = frame.shown.trace.mask;
  const auto x = [&](arma::uword j) {
    return std::round(rect.min.x +
                      (rect.max.x - rect.min.x) * static_cast<float>(j) / static_cast<float>(mask.n_cols));
  };
  const auto y = [&](arma::uword i) {
    return std::round(rect.min.y +
                      (rect.max.y - rect.min.y) * static_cast<float>(i) / static_cast<float>(mask.n_rows));
  };
  const auto hidden = [&](arma::uword i, arma::uword j) {
    return i < mask.n_rows && j < mask.n_cols && mask(i, j) == 0;
  };
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImU32 color = packed(frame.palette.accent);
  for (arma::uword i = 0; i <= mask.n_rows; ++i)
    for (arma::uword j = 0; j <= mask.n_cols; ++j) {
      if (j < mask.n_cols && hidden(i, j) != (i > 0 && hidden(i - 1, j)))
        list->AddRectFilled({x(j) - 2, y(i) - 2}, {x(j + 1), y(i)}, color);
      if (i < mask.n_rows && hidden(i, j) != (j > 0 && hidden(i, j - 1)))
        list->AddRectFilled({x(j) - 2, y(i) - 2}, {x(j), y(i + 1)}, color);
    }
}

}  // namespace

void draw_lesson_marks(const Frame& frame, std::string_view panel) {
  if (!frame.lesson) return;
  if (panel == "stages") {
    cover_other_stages(frame);
    move_to_focus(frame);
  }
  if (panel == "model") move_model_to_focus(frame);
  const ImVec2 min = ImGui::GetWindowPos(),
               max(min.x + ImGui::GetWindowWidth(), min.y + ImGui::GetWindowHeight());
  const float margin = frame.metrics.px(3);
  for (const std::string& name : frame.lesson->shown().focus) {
    const auto rect = frame.landmarks.find(name);
    // What a panel has scrolled away lies under another one.
    const bool is_here = is_stage(name) == (panel == "stages") && (!is_of_model(name) || panel == "model");
    if (!rect || !is_here || !is_within(*rect, min, max)) continue;
    if (is_stage(name) && shows_hidden(frame, name)) {
      draw_hidden_edge(frame, *rect);
      continue;
    }
    widgets::outline(ImGui::GetWindowDrawList(), {rect->min.x - margin, rect->min.y - margin},
                     {rect->max.x + margin, rect->max.y + margin}, packed(frame.palette.accent), 2);
  }
}

}  // namespace app::panels
