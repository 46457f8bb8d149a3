#include <algorithm>

#include "app/ui/panels/present/flight.hpp"
#include "app/ui/panels/present/present_panel.hpp"
#include "app/ui/widgets/cell_words.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/number_text.hpp"

namespace app::panels {
namespace {

using widgets::Align;

/// A key as a cap with words after it; gives where the next begins.
float draw_cap(const Frame& frame, float right, float middle, const char* key, const char* words) {
  ImFont* font = frame.fonts.sans12;
  const float words_width = *words ? widgets::text_width(font, words) + frame.metrics.px(6) : 0;
  const float width = widgets::text_width(font, key) + frame.metrics.px(12), half = frame.metrics.px(9);
  const float left = right - width - words_width;
  ImGui::GetWindowDrawList()->AddRectFilled({left, middle - half}, {left + width, middle + half},
                                            packed(frame.palette.control.rest), frame.metrics.px(2));
  widgets::draw_text(font, {left + width / 2, middle}, Align::middle, packed(frame.palette.text), key);
  widgets::draw_text(font, {left + width + frame.metrics.px(6), middle}, Align::left_middle,
                     packed(frame.palette.dim), words);
  return left - frame.metrics.px(8);
}

/// Which step of the lesson, else which stage of those that there are, from 1.
std::pair<std::size_t, std::size_t> index_of_count(const Frame& frame) {
  if (frame.lesson) return {frame.lesson->step + 1, frame.lesson->lesson->steps.size()};
  std::size_t index = 0, count = 0;
  for (const auto& stage : core::attention::stages())
    if (stage.present(frame.shown.model)) {
      ++count;
      if (stage.stage == presented_stage(frame)) index = count;
    }
  return {index, count};
}

/// Where one is and what goes on: the lesson's step, else the flight, else the stage.
std::pair<std::string, std::string> where(const Frame& frame) {
  const auto [index, count] = index_of_count(frame);
  const std::string place = std::to_string(index) + " of " + std::to_string(count);
  if (frame.lesson)
    return {place, frame.lesson->seen.empty() ? frame.lesson->shown().try_it : frame.lesson->seen};
  if (const std::string words = flight_words(frame); !words.empty()) return {"", words};
  return {place, core::attention::info(presented_stage(frame)).title};
}

float share_done(const Frame& frame) {
  const auto [index, count] = index_of_count(frame);
  return count > 0 ? static_cast<float>(index) / static_cast<float>(count) : 0;
}

/// What the pointer is over, else what is pinned: "starts listens to journey 0.3403".
float draw_named(const Frame& frame, float right, float middle, float room) {
  const auto& cell =
      frame.shown.selection.hovered ? frame.shown.selection.hovered : frame.shown.selection.pinned;
  if (!cell) return right;
  const widgets::CellWords words = widgets::cell_words(frame, *cell);
  const std::string value = widgets::fixed(widgets::cell_value(frame, *cell), 4);
  ImFont *sans = frame.fonts.sans12, *mono = frame.fonts.mono12;
  const std::string text = widgets::shortened(sans, words.subject + words.relation + words.object, room);
  widgets::draw_text(mono, {right, middle}, Align::right_middle, packed(frame.palette.text), value);
  const float x =
      right - widgets::text_width(mono, value) - frame.metrics.px(8) - widgets::text_width(sans, text);
  widgets::draw_text(sans, {x, middle}, Align::left_middle, packed(frame.palette.text), text);
  frame.landmarks.mark("present/named", {x, middle - 10}, {right, middle + 10});
  return x - frame.metrics.px(20);
}

}  // namespace

float present_bar_height(const Frame& frame) {
  return frame.shown.selection.presenting.on ? frame.metrics.px(32) : 0;
}

void draw_present_bar(const Frame& frame) {
  const ImVec2 at = ImGui::GetWindowPos(), size = ImGui::GetWindowSize();
  const float middle = at.y + size.y / 2, line = std::max(2.0f, frame.metrics.px(1.5f));
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->PushClipRect(at, {at.x + size.x, at.y + size.y});  // the progress runs from edge to edge
  list->AddRectFilled(at, {at.x + size.x, at.y + size.y}, packed(frame.palette.ground.panel));
  list->AddRectFilled(at, {at.x + size.x, at.y + line}, packed(frame.palette.line));
  list->AddRectFilled(at, {at.x + size.x * share_done(frame), at.y + line}, packed(frame.palette.accent));
  frame.landmarks.mark("present/progress", at, {at.x + size.x * share_done(frame), at.y + line});
  float right = draw_named(frame, at.x + size.x - frame.metrics.px(26), middle, size.x * 0.22f);
  right = draw_cap(frame, right, middle, "F5", "back");
  if (frame.shown.selection.pinned && !frame.settings.reduce_motion)
    right = draw_cap(frame, right, middle, "space", "plays");
  right = draw_cap(frame, right, middle, "← →", "");
  const auto [place, words] = where(frame);
  float x = at.x + frame.metrics.px(26);
  ImFont* font = frame.fonts.sans12;
  widgets::draw_text(font, {x, middle}, Align::left_middle, packed(frame.palette.dim), place);
  if (!place.empty()) x += widgets::text_width(font, place) + frame.metrics.px(12);
  widgets::draw_text(font, {x, middle}, Align::left_middle, packed(frame.palette.text),
                     widgets::shortened(font, words, std::max(1.0f, right - x)));
  list->PopClipRect();
  frame.landmarks.mark("present/bar", at, {at.x + size.x, at.y + size.y});
}

}  // namespace app::panels
