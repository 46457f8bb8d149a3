#include "app/ui/panels/lessons/lesson_panel.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/widgets/buttons.hpp"
#include "app/ui/widgets/glossed_text.hpp"
#include "app/ui/widgets/hit_area.hpp"
#include "app/ui/widgets/text.hpp"
#include "core/lessons/lessons.hpp"

namespace app::panels {
namespace {

using core::lessons::Step;

/// Lines of the panel at scale 1.
constexpr float top_line = 26, title_line = 32, gap = 8, keys_line = 30, edges = 22;

float text_width_within(const Frame& frame, float width) {
  return std::max(frame.metrics.px(120), width - 2 * frame.metrics.padding);
}

bool is_done(const Frame& frame) {
  return frame.lesson->done.contains(frame.lesson->step);
}

std::optional<CellRef> guess(const Frame& frame) {
  return frame.newest.selection.lesson ? frame.newest.selection.lesson->guess : std::nullopt;
}

/// Whether the step asks for a guess that was not made yet.
bool asks(const Frame& frame) {
  return frame.lesson->shown().predict && frame.lesson->seen.empty() && !guess(frame);
}

/// "Guess", or "Try it" and what to do, or, once it was done, a tick and what was seen.
std::string invitation(const Frame& frame) {
  const LessonState& lesson = *frame.lesson;
  if (asks(frame)) return core::lessons::question(lesson.shown());
  if (lesson.seen.empty()) return lesson.shown().try_it;
  const auto cell = guess(frame);
  const std::string verdict = cell ? core::lessons::verdict(lesson.moved, cell->row, cell->column) : "";
  return verdict.empty() ? lesson.seen : lesson.seen + " " + verdict;
}

/// The first cell of the stage in question that is pinned is the guess.
void take_guess(const Frame& frame) {
  const auto& pinned = frame.newest.selection.pinned;
  if (!asks(frame) || !pinned || pinned->stage != *frame.lesson->shown().predict || pinned->head != 0) return;
  frame.commands.look([cell = *pinned](View& view) {
    if (view.selection.lesson) view.selection.lesson->guess = cell;
  });
}

float box_label_width(const Frame& frame) {
  return widgets::text_width(frame.fonts.sans15, "✓ Seen") + frame.metrics.px(24);
}

float box_height(const Frame& frame, float width) {
  const float room = width - box_label_width(frame) - frame.metrics.px(12);
  return widgets::glossed_height(frame, frame.fonts.sans15, room, invitation(frame)) + frame.metrics.px(8);
}

/// One bar a step: filled up to the shown one, with a tick of good color where it was tried.
void draw_progress(const Frame& frame, float right, float middle) {
  const LessonState& state = *frame.lesson;
  const std::size_t n = state.lesson->steps.size();
  const float width = frame.metrics.px(14), pitch = width + frame.metrics.px(3), half = frame.metrics.px(3);
  float x = right - pitch * static_cast<float>(n) + frame.metrics.px(3);
  const std::string words = "step " + std::to_string(state.step + 1) + " of " + std::to_string(n);
  widgets::draw_text(frame.fonts.sans14, {x - frame.metrics.px(12), middle}, widgets::Align::right_middle,
                     packed(frame.palette.dim), words);
  ImDrawList* list = ImGui::GetWindowDrawList();
  for (std::size_t k = 0; k < n; ++k, x += pitch) {
    const Rgb color = k <= state.step ? frame.palette.accent : frame.palette.control.active;
    list->AddRectFilled({x, middle - half}, {x + width, middle + half}, packed(color));
    if (state.done.contains(k))
      list->AddRectFilled({x, middle + half + 2}, {x + width, middle + half + 4},
                          packed(frame.palette.status.good));
    frame.landmarks.mark("lesson/progress/" + std::to_string(k), {x, middle - half},
                         {x + width, middle + half});
  }
}

void draw_box(const Frame& frame, float width) {
  const bool seen = !frame.lesson->seen.empty();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float height = box_height(frame, width), label = box_label_width(frame);
  ImFont* font = frame.fonts.sans15;
  ImGui::GetWindowDrawList()->AddRectFilled(at, {at.x + width, at.y + height},
                                            packed(frame.palette.ground.panel), frame.metrics.px(3));
  const ImVec2 words(at.x + frame.metrics.px(12), at.y + frame.metrics.px(6));
  widgets::draw_text(font, words, seen ? frame.palette.status.good : frame.palette.accent,
                     seen          ? "✓ Seen"
                     : asks(frame) ? "Guess"
                                   : "Try it");
  platform::move_to({at.x + label, words.y});
  widgets::glossed_text(frame, font, frame.palette.text, width - label - frame.metrics.px(12),
                        invitation(frame));
  frame.landmarks.mark(seen ? "lesson/seen" : "lesson/try", at, {at.x + width, at.y + height});
  if (asks(frame)) frame.landmarks.mark("lesson/question", at, {at.x + width, at.y + height});
  platform::move_to({at.x, at.y + height});
}

struct KeyButton {
  const char *name, *key;
  std::string words;
  Command command;
};

/// The lesson after this one, or nullptr.
const core::lessons::Lesson* next_lesson(const Frame& frame) {
  const auto all = core::lessons::lessons();
  const auto at = static_cast<std::size_t>(frame.lesson->lesson - all.data());
  return at + 1 < all.size() ? &all[at + 1] : nullptr;
}

/// What goes on: the next step, or behind the last one the next lesson.
KeyButton way_on(const Frame& frame) {
  const bool is_last = frame.lesson->step + 1 == frame.lesson->lesson->steps.size();
  const core::lessons::Lesson* next = is_last ? next_lesson(frame) : nullptr;
  if (next) return {"lesson/next_lesson", "Next lesson", next->title, StartLesson{next->name}};
  return {"lesson/next", "→", is_last ? "this was the last step" : "next", GoInLesson{1}};
}

void draw_keys(const Frame& frame, float room) {
  std::array keys{KeyButton{"lesson/back", "←", "back", GoInLesson{-1}}, way_on(frame),
                  KeyButton{"lesson/again", "R", "start this step again", GoInLesson{0}},
                  KeyButton{"lesson/leave", "Esc", "leave the lesson", LeaveLesson{}}};
  const auto wide = [&](const KeyButton& key) {
    return widgets::text_width(frame.fonts.sans14, key.key) + frame.metrics.px(14 + 8 + 24) +
           widgets::text_width(frame.fonts.sans14, key.words);
  };
  float all = -frame.metrics.px(24);
  for (const KeyButton& key : keys) all += wide(key);
  if (all > room) {  // a long name of the next lesson
    const float before = wide(keys[2]) + wide(keys[3]);
    keys[2].words = "again", keys[3].words = "leave";
    all += wide(keys[2]) + wide(keys[3]) - before;
    const float title = widgets::text_width(frame.fonts.sans14, keys[1].words);
    if (all > room)
      keys[1].words = widgets::shortened(frame.fonts.sans14, keys[1].words, title - (all - room));
  }
  ImVec2 at = ImGui::GetCursorScreenPos();
  ImFont* font = frame.fonts.sans14;
  const float height = frame.metrics.px(22);
  for (const KeyButton& key : keys) {
    const float cap = widgets::text_width(font, key.key) + frame.metrics.px(14);
    const float width = cap + frame.metrics.px(8) + widgets::text_width(font, key.words);
    platform::move_to(at);
    if (widgets::hit_area(key.name, {width, height})) frame.commands.add(key.command);
    frame.landmarks.mark_item(key.name);
    const bool lit = ImGui::IsItemHovered() || ImGui::IsItemFocused();
    ImGui::GetWindowDrawList()->AddRectFilled(
        at, {at.x + cap, at.y + height},
        packed(lit ? frame.palette.control.active : frame.palette.control.rest), frame.metrics.px(3));
    const float middle = at.y + height / 2;
    widgets::draw_text(font, {at.x + cap / 2, middle}, widgets::Align::middle, packed(frame.palette.text),
                       key.key);
    widgets::draw_text(font, {at.x + cap + frame.metrics.px(8), middle}, widgets::Align::left_middle,
                       packed(lit ? frame.palette.text : frame.palette.dim), key.words);
    at.x += width + frame.metrics.px(24);
  }
}

}  // namespace

float lesson_panel_height(const Frame& frame, float width) {
  if (!frame.lesson) return 0;
  const float room = text_width_within(frame, width);
  const float words = widgets::glossed_height(frame, frame.fonts.sans15, room, frame.lesson->shown().text);
  return frame.metrics.px(edges + top_line + title_line + gap + keys_line) + words + box_height(frame, room);
}

void draw_lesson(const Frame& frame) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  take_guess(frame);
  const Step& step = frame.lesson->shown();
  const ImVec2 window = ImGui::GetWindowPos(), size = ImGui::GetWindowSize();
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->PushClipRect(window, {window.x + size.x, window.y + size.y});
  list->AddRectFilled(window, {window.x + size.x, window.y + 1}, packed(frame.palette.line));
  list->AddRectFilled(window, {window.x + frame.metrics.px(3), window.y + size.y},
                      packed(frame.palette.accent));
  list->PopClipRect();

  const float middle = at.y + frame.metrics.px(top_line) / 2;
  widgets::draw_text(frame.fonts.sans14, {at.x, middle}, widgets::Align::left_middle,
                     packed(frame.palette.dim), frame.lesson->lesson->title);
  draw_progress(frame, at.x + width, middle);
  const float title = at.y + frame.metrics.px(top_line);
  widgets::draw_text(frame.fonts.sans17,
                     {at.x, widgets::centred_y(frame.fonts.sans17, title, frame.metrics.px(title_line))},
                     frame.palette.text, step.title);
  frame.landmarks.mark("lesson/title", {at.x, title}, {at.x + width, title + frame.metrics.px(title_line)});
  if (is_done(frame) && frame.lesson->seen.empty()) {
    const float x = at.x + widgets::text_width(frame.fonts.sans17, step.title) + frame.metrics.px(12);
    widgets::draw_text(frame.fonts.sans14, {x, title + frame.metrics.px(title_line) / 2},
                       widgets::Align::left_middle, packed(frame.palette.status.good), "✓ tried before");
  }
  platform::move_to({at.x, title + frame.metrics.px(title_line)});
  widgets::glossed_text(frame, frame.fonts.sans15, frame.palette.text, width, step.text);
  const ImVec2 box = ImGui::GetCursorScreenPos();
  platform::move_to({at.x, box.y});
  draw_box(frame, width);
  platform::move_to({at.x, ImGui::GetCursorScreenPos().y + frame.metrics.px(gap)});
  draw_keys(frame, width);
}

void draw_lesson_words(const Frame& frame) {
  if (!frame.lesson) return;
  const float width = ImGui::GetContentRegionAvail().x;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImGui::GetWindowDrawList()->AddRectFilled(at, {at.x + width, at.y + 1}, packed(frame.palette.line));
  ImGui::Dummy({width, frame.metrics.px(10)});
  widgets::paragraph(frame.fonts.sans16, frame.palette.text, width, "Words of this step");
  ImGui::Dummy({width, frame.metrics.px(2)});
  for (const std::string& word : frame.lesson->shown().words) {
    const core::lessons::Term* term = core::lessons::find_term(word);
    if (!term) continue;
    widgets::paragraph(frame.fonts.sans15, frame.palette.text, width, term->word);
    frame.landmarks.mark_item(std::string("lesson/word/") + term->word);
    widgets::paragraph(frame.fonts.sans14, frame.palette.dim, width, term->meaning);
    ImGui::Dummy({width, frame.metrics.px(3)});
  }
}

}  // namespace app::panels
