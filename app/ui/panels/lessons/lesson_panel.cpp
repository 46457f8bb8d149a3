#include "app/ui/panels/lessons/lesson_panel.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/fields.hpp"
#include "app/ui/widgets/heatmap/heatmap_view.hpp"
#include "core/lessons/lessons.hpp"

namespace app::panels {

using core::attention::Stage;

namespace {

constexpr float dim_opacity = 0.58f;

bool is_within(const Rect& rect, ImVec2 min, ImVec2 max) {
  const ImVec2 c = rect.center();
  return c.x >= min.x && c.x < max.x && c.y >= min.y && c.y < max.y;
}

bool is_stage(std::string_view name) {
  return name.starts_with("strip/");
}

/// Dims all between and around the stages in the focus of the step, if it has any.
void dim_other_stages(const Frame& frame) {
  const ImVec2 min = ImGui::GetWindowDrawList()->GetClipRectMin(),
               max = ImGui::GetWindowDrawList()->GetClipRectMax();
  std::vector<Rect> bright;  // from left to right
  std::vector<float> edges{min.y, max.y};
  for (const std::string_view name : frame.lesson->shown().focus) {
    if (!is_stage(name)) continue;
    if (const auto rect = frame.landmarks.find("block/" + std::string(name.substr(6))))
      bright.push_back(*rect);
  }
  if (bright.empty()) return;
  for (Rect& rect : bright)  // a block may extend under its left neighbor
    for (const auto& [name, other] : frame.landmarks.all())
      if (name.starts_with("block/") && other.min.x < rect.min.x && other.min.y < rect.max.y &&
          other.max.y > rect.min.y)
        rect.min.x = std::max(rect.min.x, other.max.x);
  std::ranges::sort(bright, {}, [](const Rect& rect) { return rect.min.x; });
  for (const Rect& rect : bright)
    for (const float y : {rect.min.y, rect.max.y}) edges.push_back(std::clamp(y, min.y, max.y));
  std::ranges::sort(edges);
  for (std::size_t k = 0; k + 1 < edges.size(); ++k) {  // in bands, so that nothing is dimmed twice
    const auto dim = [&, top = edges[k], bottom = edges[k + 1]](float left, float right) {
      if (left < right && top < bottom)
        draw_rect({left, top}, {right, bottom}, packed(frame.palette.background.back, dim_opacity));
    };
    float left = min.x;
    for (const Rect& rect : bright) {
      if (rect.min.y >= edges[k + 1] || rect.max.y <= edges[k]) continue;
      dim(left, rect.min.x);
      left = std::max(left, rect.max.x);
    }
    dim(left, max.x);
  }
}

/// Returns how far to scroll down, in pixels, to show the stages in the focus of the step; negative is up.
float focus_scroll_distance(const Frame& frame) {
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

/// Changes the stored place in the lesson, such as a guess.
template <class Change>
void update_lesson_place(const Frame& frame, Change change) {
  if (!frame.pending.selection.lesson) return;
  LessonPlace place = *frame.pending.selection.lesson;
  change(place);
  frame.commands.add(set<&Selection::lesson>(std::move(place)));
}

/// Scrolls the stages in the focus of the step into view, once: the first frames of a step may still change
/// the layout.
void scroll_to_focus(const Frame& frame) {
  if (!frame.displayed.selection.lesson || frame.displayed.selection.lesson->has_scrolled) return;
  const float before = ImGui::GetScrollY();
  const float after = std::clamp(before + focus_scroll_distance(frame), 0.0f, ImGui::GetScrollMaxY());
  ImGui::SetScrollY(after);
  if (std::abs(after - before) < 1 && frame.displayed.selection.lesson->frames_shown > 0)
    update_lesson_place(frame, [](LessonPlace& place) { place.has_scrolled = true; });
  else
    update_lesson_place(frame, [](LessonPlace& place) { ++place.frames_shown; });
}

bool is_model_field(std::string_view name) {
  return name.starts_with("model/");
}

/// Scrolls the field of MODEL in the focus of the step into view when the step begins.
void scroll_model_to_focus(const Frame& frame) {
  const auto& lesson = frame.displayed.selection.lesson;
  if (!lesson || lesson->has_scrolled || frame.displayed.look.tab != Tab::stages) return;
  const float top = ImGui::GetWindowPos().y, bottom = top + ImGui::GetWindowHeight(),
              margin = frame.metrics.px(8);
  for (const std::string_view name : frame.lesson->shown().focus) {
    const auto rect = is_model_field(name) ? frame.landmarks.find(std::string(name)) : std::nullopt;
    if (!rect) continue;
    const float down = rect->max.y + margin - bottom, up = rect->min.y - margin - top;
    if (down > 0 || up < 0) ImGui::SetScrollY(ImGui::GetScrollY() + (up < 0 ? up : std::min(down, up)));
    return;
  }
}

/// Returns whether the step is about the mask, and this stage shows masked positions.
bool outlines_masked(const Frame& frame, std::string_view name) {
  const auto& words = frame.lesson->shown().words;
  const bool is_about_mask =
      std::ranges::any_of(words, [](std::string_view w) { return w == "mask" || w == "−∞"; });
  const auto* stage = is_about_mask ? core::attention::find_stage(name.substr(6)) : nullptr;
  if (!stage || !frame.displayed.has(stage->stage) || stage->columns != core::attention::Columns::tokens)
    return false;
  const bool is_before = stage->stage < Stage::mask;
  constexpr std::size_t most = 1024;
  const auto& mask = frame.displayed.trace.at(Stage::mask);
  return !is_before && mask.n_rows() * mask.n_cols() <= most && arma::accu(*mask == 0) > 0;
}

/// Draws a line around the masked positions: the staircase of a causal mask.
void outline_masked(const Frame& frame, const Rect& rect) {
  const arma::mat& mask = frame.displayed.trace.at(Stage::mask);
  const auto x = [&](arma::uword j) {
    return std::round(rect.min.x +
                      (rect.max.x - rect.min.x) * static_cast<float>(j) / static_cast<float>(mask.n_cols));
  };
  const auto y = [&](arma::uword i) {
    return std::round(rect.min.y +
                      (rect.max.y - rect.min.y) * static_cast<float>(i) / static_cast<float>(mask.n_rows));
  };
  const auto is_masked = [&](arma::uword i, arma::uword j) {
    return i < mask.n_rows && j < mask.n_cols && mask(i, j) == 0;
  };
  const ImU32 color = packed(frame.palette.accent);
  for (arma::uword i = 0; i <= mask.n_rows; ++i)
    for (arma::uword j = 0; j <= mask.n_cols; ++j) {
      if (j < mask.n_cols && is_masked(i, j) != (i > 0 && is_masked(i - 1, j)))
        draw_rect({x(j) - 2, y(i) - 2}, {x(j + 1), y(i)}, color);
      if (i < mask.n_rows && is_masked(i, j) != (j > 0 && is_masked(i, j - 1)))
        draw_rect({x(j) - 2, y(i) - 2}, {x(j), y(i + 1)}, color);
    }
}

}  // namespace

void draw_lesson_marks(const Frame& frame, std::string_view panel) {
  if (!frame.lesson) return;
  if (panel == "stages") {
    dim_other_stages(frame);
    scroll_to_focus(frame);
  }
  if (panel == "model") scroll_model_to_focus(frame);
  const auto [min, max] = window_rect();
  const float margin = frame.metrics.px(3);
  for (const std::string& name : frame.lesson->shown().focus) {
    const auto rect = frame.landmarks.find(name);
    // Parts that a panel has scrolled out of view are below another panel.
    const bool is_here = is_stage(name) == (panel == "stages") && (!is_model_field(name) || panel == "model");
    if (!rect || !is_here || !is_within(*rect, min, max)) continue;
    if (is_stage(name) && outlines_masked(frame, name)) {
      outline_masked(frame, *rect);
      continue;
    }
    outline({rect->min.x - margin, rect->min.y - margin}, {rect->max.x + margin, rect->max.y + margin},
            frame.palette.accent, 2);
  }
}

namespace {

using core::lessons::LessonStep;

/// Heights of the parts of the panel, at scale 1.
constexpr float top_line = 26, title_line = 32, gap = 8, keys_line = 30, edges = 22;

float text_width_within(const Frame& frame, float width) {
  return std::max(frame.metrics.px(120), width - 2 * frame.metrics.padding);
}

bool is_done(const Frame& frame) {
  return frame.lesson->done.contains(frame.lesson->step);
}

std::optional<CellRef> guess(const Frame& frame) {
  return frame.pending.selection.lesson ? frame.pending.selection.lesson->guess : std::nullopt;
}

/// Returns whether the step asks for a guess that was not made yet.
bool awaits_guess(const Frame& frame) {
  return frame.lesson->shown().predict && frame.lesson->seen.empty() && !guess(frame);
}

/// Returns "Your guess: ‘The’ → ‘cat’.", or with the numbers of row and column for stages without keys.
std::string guess_words(const Frame& frame, const CellRef& cell) {
  const auto& sequence = frame.displayed.sequence();
  const auto& info = core::attention::info(cell.stage);
  if (info.columns == core::attention::Columns::tokens && cell.row < sequence.tokens.size() &&
      cell.column < sequence.keys().size())
    return "Your guess: " + quoted_token(sequence.tokens[cell.row]) + " → " +
           quoted_token(sequence.keys()[cell.column]) + ".";
  return fmt::format("Your guess: row {}, column {}.", cell.row, cell.column);
}

/// Returns the question to guess, or the task to try or, once it is done, its result and the verdict.
std::string task_text(const Frame& frame) {
  const LessonState& lesson = *frame.lesson;
  if (awaits_guess(frame)) return core::lessons::question(lesson.shown());
  const auto cell = guess(frame);
  if (lesson.seen.empty()) return (cell ? guess_words(frame, *cell) + " " : "") + lesson.shown().try_it;
  const std::string verdict = cell ? core::lessons::verdict(lesson.moved, cell->row, cell->column) : "";
  return verdict.empty() ? lesson.seen : lesson.seen + " " + verdict;
}

/// Takes the first pinned cell of the stage in question as the guess.
void take_guess(const Frame& frame) {
  const auto& pinned = frame.pending.selection.pinned;
  if (!awaits_guess(frame) || !pinned || pinned->stage != *frame.lesson->shown().predict || pinned->head != 0)
    return;
  update_lesson_place(frame, [&](LessonPlace& place) { place.guess = *pinned; });
}

/// Returns the room for "Try it" left of the text; next to the maps of a whole model it is above.
float box_label_width(const Frame& frame) {
  if (lesson_is_in_inspector(frame)) return frame.metrics.px(12);
  return text_width(frame.fonts.sans15, "✓ Seen") + frame.metrics.px(24);
}

float box_height(const Frame& frame, float width) {
  const float room = width - box_label_width(frame) - frame.metrics.px(12);
  return glossary_text_height(frame, frame.fonts.sans15, room, task_text(frame)) +
         frame.metrics.px(lesson_is_in_inspector(frame) ? 30 : 8);
}

/// Draws one bar per step: filled up to the current one, underlined in the good color once tried.
void draw_progress(const Frame& frame, float x, float middle, float pitch) {
  const LessonState& state = *frame.lesson;
  const std::size_t n = state.lesson->steps.size();
  const float width = pitch - frame.metrics.px(3), half = frame.metrics.px(3);
  for (std::size_t k = 0; k < n; ++k, x += pitch) {
    const Rgb color = k <= state.step ? frame.palette.accent : frame.palette.control.active;
    draw_rect({x, middle - half}, {x + width, middle + half}, color);
    if (state.done.contains(k))
      draw_rect({x, middle + half + 2}, {x + width, middle + half + 4}, frame.palette.status.good);
    frame.landmarks.mark("lesson/progress/" + std::to_string(k), {x, middle - half},
                         {x + width, middle + half});
  }
}

std::string step_words(const Frame& frame) {
  return fmt::format("{} of {}", frame.lesson->step + 1, frame.lesson->lesson->steps.size());
}

void draw_box(const Frame& frame, float width) {
  const bool is_in_inspector = lesson_is_in_inspector(frame);
  const bool seen = !frame.lesson->seen.empty();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float height = box_height(frame, width), label = box_label_width(frame);
  ImFont* font = frame.fonts.sans15;
  draw_rect(at, {at.x + width, at.y + height},
            is_in_inspector ? frame.palette.background.raised : frame.palette.background.panel,
            frame.metrics.px(3));
  const ImVec2 words(at.x + frame.metrics.px(12), at.y + frame.metrics.px(6));
  draw_text(font, words, seen ? frame.palette.status.good : frame.palette.accent,
            seen                  ? "✓ Seen"
            : awaits_guess(frame) ? "Guess"
                                  : "Try it");
  platform::move_to({at.x + label, words.y + frame.metrics.px(is_in_inspector ? 21 : 0)});
  draw_glossary_text(frame, font, frame.palette.text, width - label - frame.metrics.px(12), task_text(frame));
  frame.landmarks.mark(seen ? "lesson/seen" : "lesson/try", at, {at.x + width, at.y + height});
  if (awaits_guess(frame)) frame.landmarks.mark("lesson/question", at, {at.x + width, at.y + height});
  platform::move_to({at.x, at.y + height});
}

struct KeyButton {
  const char *name, *key;
  std::string words;
  Command command;
};

/// Returns the lesson after this one, or nullptr, also after one of somebody's own.
const core::lessons::Lesson* next_lesson(const Frame& frame) {
  if (!frame.lesson->lesson->source.empty()) return nullptr;
  const auto& all = core::lessons::lessons();
  const auto at = static_cast<std::size_t>(frame.lesson->lesson - all.data());
  return at + 1 < all.size() ? &all[at + 1] : nullptr;
}

/// Returns the button for the next step, or after the last one for the next lesson.
KeyButton next_button(const Frame& frame) {
  const bool is_last = frame.lesson->step + 1 == frame.lesson->lesson->steps.size();
  const core::lessons::Lesson* next = is_last ? next_lesson(frame) : nullptr;
  if (next) return {"lesson/next_lesson", "Next lesson", next->title, StartLesson{next->name}};
  return {"lesson/next", "→", is_last ? "this was the last step" : "next", StepLesson{1}};
}

void draw_navigation_keys(const Frame& frame, float room) {
  std::array keys{KeyButton{"lesson/back", "←", "back", StepLesson{-1}}, next_button(frame),
                  KeyButton{"lesson/again", "R", "restart this step", StepLesson{0}},
                  KeyButton{"lesson/leave", "Esc", "leave the lesson", LeaveLesson{}}};
  ImFont* font = frame.fonts.sans14;
  const float height = frame.metrics.px(22), after_cap = frame.metrics.px(8), between = frame.metrics.px(24);
  const auto wide = [&](const KeyButton& key) {
    return key_cap_width(frame, font, key.key) + after_cap + text_width(font, key.words);
  };
  const auto all = [&] {
    float width = -between;
    for (const KeyButton& key : keys) width += wide(key) + between;
    return width;
  };
  const bool is_in_inspector = lesson_is_in_inspector(frame);
  if (is_in_inspector || all() > room) keys[2].words = "again", keys[3].words = "leave";
  if (const float over = all() - room; over > 0 && !is_in_inspector)  // the next lesson has a long title
    keys[1].words = shortened(font, keys[1].words, text_width(font, keys[1].words) - over);
  Flow flow{ImGui::GetCursorScreenPos(), room + 1, between, height + frame.metrics.px(6)};
  for (KeyButton& key : keys) {
    key.words = shortened(font, key.words, room - key_cap_width(frame, font, key.key) - after_cap);
    const ImVec2 at = flow.place(wide(key));
    platform::move_to(at);
    if (hit_area(key.name, {wide(key), height})) frame.commands.add(key.command);
    frame.landmarks.mark_item(key.name);
    const bool lit = ImGui::IsItemHovered() || ImGui::IsItemFocused();
    const auto& p = frame.palette;
    const float middle = at.y + height / 2;
    const float cap =
        draw_key_cap(frame, font, {at.x, middle}, key.key, lit ? p.control.active : p.control.rest);
    draw_text(font, {at.x + cap + after_cap, middle}, Align::left_middle, lit ? p.text : p.dim, key.words);
  }
  reserve_room({flow.start.x, flow.next.y}, {room, height});
}

struct PresentedText {
  ImFont* font;
  Rgb color;
  std::string words;
};

/// Returns the lesson, the step, its text, and its task, or what was seen.
std::array<PresentedText, 4> presented_texts(const Frame& frame) {
  const Fonts& f = frame.fonts;
  const Palette& p = frame.palette;
  const LessonStep& step = frame.lesson->shown();
  const bool is_seen = !frame.lesson->seen.empty();
  return {PresentedText{f.sans12, p.dim, frame.lesson->lesson->title},
          {f.sans16, p.text, step.title},
          {f.sans12, p.text, step.text},
          {f.sans12, is_seen ? p.status.good : p.text, is_seen ? frame.lesson->seen : step.try_it}};
}

}  // namespace

bool lesson_is_in_inspector(const Frame& frame) {
  const Tab tab = frame.displayed.look.tab;
  return frame.lesson && !frame.forms.is_embedded &&
         ((frame.pending.full_model && tab == Tab::layers) || tab == Tab::learn);
}

void draw_lesson_in_inspector(const Frame& frame) {
  take_guess(frame);
  const auto& f = frame;
  const LessonStep& step = f.lesson->shown();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x, middle = at.y + f.metrics.px(8);
  const std::string place = step_words(f);
  draw_text(f.fonts.sans13, {at.x + width, middle}, Align::right_middle, f.palette.faint, place);
  draw_text(f.fonts.sans13, {at.x, middle}, Align::left_middle, f.palette.dim,
            shortened(f.fonts.sans13, f.lesson->lesson->title,
                      width - text_width(f.fonts.sans13, place) - f.metrics.px(12)));
  const auto n = static_cast<float>(f.lesson->lesson->steps.size());
  draw_progress(f, at.x, at.y + f.metrics.px(24), (width + f.metrics.px(3)) / n);
  ImGui::Dummy({width, f.metrics.px(30)});
  paragraph(f.fonts.sans19, f.palette.text, width, step.title);
  f.landmarks.mark_item("lesson/title");
  ImGui::Dummy({width, 1});
  draw_glossary_text(f, f.fonts.sans15, f.palette.text, width, step.text);
  ImGui::Dummy({width, f.metrics.px(2)});
  draw_box(f, width);
  ImGui::Dummy({width, f.metrics.px(gap)});
  draw_navigation_keys(f, width);
  ImGui::Dummy({width, f.metrics.px(6)});
  const auto [window, far] = window_rect();
  const float end = ImGui::GetCursorScreenPos().y;
  ImGui::PushClipRect(window, far, false);
  draw_rect(window, {window.x + f.metrics.px(3), end}, f.palette.accent);
  draw_rect({window.x, end}, {far.x, end + 1}, f.palette.line);
  ImGui::PopClipRect();
  f.landmarks.mark("region/lesson", window, {far.x, end});
  ImGui::Dummy({width, f.metrics.px(8)});
}

float lesson_panel_height(const Frame& frame, float width) {
  if (!frame.lesson || lesson_is_in_inspector(frame)) return 0;
  const float room = text_width_within(frame, width);
  const float words = glossary_text_height(frame, frame.fonts.sans15, room, frame.lesson->shown().text);
  return frame.metrics.px(edges + top_line + title_line + gap + keys_line) + words + box_height(frame, room);
}

float presented_lesson_height(const Frame& frame, float width) {
  float height = 0;
  for (const PresentedText& text : presented_texts(frame))
    height += glossary_text_height(frame, text.font, width - frame.metrics.px(8), text.words) +
              ImGui::GetStyle().ItemSpacing.y;
  return height;
}

void draw_presented_lesson(const Frame& frame, float width) {
  const float room = width - frame.metrics.px(8);  // the task is indented
  const auto texts = presented_texts(frame);
  for (std::size_t k = 0; k + 1 < texts.size(); ++k)
    draw_glossary_text(frame, texts.at(k).font, texts.at(k).color, room, texts.at(k).words);
  const ImVec2 top = ImGui::GetCursorScreenPos();
  ImGui::Indent(frame.metrics.px(8));
  draw_glossary_text(frame, texts.back().font, texts.back().color, room, texts.back().words);
  ImGui::Unindent(frame.metrics.px(8));
  draw_rect(top, {top.x + frame.metrics.px(2), ImGui::GetItemRectMax().y}, frame.palette.accent);
  frame.landmarks.mark("present/lesson", top, ImGui::GetItemRectMax());
}

void draw_lesson(const Frame& frame) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  take_guess(frame);
  const LessonStep& step = frame.lesson->shown();
  const auto [window, far] = window_rect();
  ImGui::PushClipRect(window, far, false);
  draw_rect(window, {far.x, window.y + 1}, frame.palette.line);
  draw_rect(window, {window.x + frame.metrics.px(3), far.y}, frame.palette.accent);
  ImGui::PopClipRect();

  const float middle = at.y + frame.metrics.px(top_line) / 2;
  draw_text(frame.fonts.sans14, {at.x, middle}, Align::left_middle, frame.palette.dim,
            frame.lesson->lesson->title);
  const auto n = static_cast<float>(frame.lesson->lesson->steps.size());
  const float pitch = frame.metrics.px(17), bars = at.x + width - pitch * n + frame.metrics.px(3);
  draw_progress(frame, bars, middle, pitch);
  draw_text(frame.fonts.sans14, {bars - frame.metrics.px(12), middle}, Align::right_middle, frame.palette.dim,
            "step " + step_words(frame));
  const float title = at.y + frame.metrics.px(top_line);
  draw_text(frame.fonts.sans17, {at.x, centered_y(frame.fonts.sans17, title, frame.metrics.px(title_line))},
            frame.palette.text, step.title);
  frame.landmarks.mark("lesson/title", {at.x, title}, {at.x + width, title + frame.metrics.px(title_line)});
  if (is_done(frame) && frame.lesson->seen.empty()) {
    const float x = at.x + text_width(frame.fonts.sans17, step.title) + frame.metrics.px(12);
    draw_text(frame.fonts.sans14, {x, title + frame.metrics.px(title_line) / 2}, Align::left_middle,
              frame.palette.status.good, "✓ done before");
  }
  platform::move_to({at.x, title + frame.metrics.px(title_line)});
  draw_glossary_text(frame, frame.fonts.sans15, frame.palette.text, width, step.text);
  const ImVec2 box = ImGui::GetCursorScreenPos();
  platform::move_to({at.x, box.y});
  draw_box(frame, width);
  platform::move_to({at.x, ImGui::GetCursorScreenPos().y + frame.metrics.px(gap)});
  draw_navigation_keys(frame, width);
}

void draw_lesson_terms(const Frame& frame) {
  if (!frame.lesson) return;
  const float width = ImGui::GetContentRegionAvail().x;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  draw_rect(at, {at.x + width, at.y + 1}, frame.palette.line);
  ImGui::Dummy({width, frame.metrics.px(10)});
  paragraph(frame.fonts.sans16, frame.palette.text, width, "Terms of this step");
  ImGui::Dummy({width, frame.metrics.px(2)});
  for (const std::string& word : frame.lesson->shown().words) {
    const core::lessons::Term* term = core::lessons::find_term(word);
    if (!term) continue;
    paragraph(frame.fonts.sans15, frame.palette.text, width, term->word);
    frame.landmarks.mark_item(std::string("lesson/word/") + term->word);
    paragraph(frame.fonts.sans14, frame.palette.dim, width, term->meaning);
    ImGui::Dummy({width, frame.metrics.px(3)});
  }
}

namespace {

using core::lessons::ExhibitPicture;
using core::lessons::ExhibitShading;

// At scale 1.
constexpr float title_height = 26, labels_height = 18, note_height = 22, max_row_height = 24,
                min_row_height = 3, edge = 10, picture_gap = 32;

/// Returns the stage in whose style a picture is drawn.
Stage style_stage(const ExhibitPicture& picture) {
  switch (picture.shading) {
    case ExhibitShading::weights:
    case ExhibitShading::bars:
      return Stage::weights;
    case ExhibitShading::mask:
      return Stage::mask;
    case ExhibitShading::signed_values:
      break;
  }
  return Stage::scores;
}

ColorLimits ends_of(const ExhibitPicture& picture) {
  if (picture.shading != ExhibitShading::signed_values) return {0, 1};
  const ValueRange e = value_range(picture.numbers);
  const double most = std::max(-e.smallest, e.largest);
  return {-most, most};
}

float max_text_width(ImFont* font, const std::vector<std::string>& words) {
  float width = 0;
  for (const std::string& word : words) width = std::max(width, text_width(font, word));
  return width;
}

/// A picture with the widths of its parts, in pixels.
struct PictureLayout {
  const ExhibitPicture* picture;
  float labels, cells, ends, title;
  float width() const { return std::max(labels + cells + ends, title); }
};

PictureLayout lay_out_picture(const Frame& frame, const ExhibitPicture& p, float room, float row) {
  const float max_label_width = frame.metrics.px(frame.metrics.compact ? 90 : 150);
  PictureLayout place{&p, 0, 0, 0, 0};
  place.labels = std::min(max_text_width(frame.fonts.sans13, p.rows), max_label_width) + frame.metrics.px(32);
  place.ends = p.ends.empty() ? 0
                              : std::min(max_text_width(frame.fonts.sans14, p.ends), max_label_width) +
                                    frame.metrics.px(12);
  const float n = static_cast<float>(std::max<arma::uword>(1, p.numbers.n_cols));
  const float named = p.columns.empty()
                          ? 0
                          : std::min(max_text_width(frame.fonts.sans12, p.columns) + frame.metrics.px(6),
                                     frame.metrics.px(72));
  const float preferred = p.shading == ExhibitShading::bars
                              ? frame.metrics.px(220)
                              : n * std::clamp(std::max(row * 1.9f, named), 1.0f, frame.metrics.px(72));
  place.cells = std::floor(std::max(n, std::min(preferred, room - place.labels - place.ends)));
  place.title = text_width(frame.fonts.sans15, p.title);
  return place;
}

/// Draws one column of numbers as bars, to show lengths instead of colors alone.
void draw_bars(const Frame& frame, const PictureLayout& place, ImVec2 at, float row) {
  const ExhibitPicture& p = *place.picture;
  for (std::size_t i = 0; i < p.numbers.n_rows; ++i) {
    const double v = p.numbers(i, 0);
    const float middle = at.y + (static_cast<float>(i) + 0.5f) * row,
                half = std::max(1.0f, row / 2 - frame.metrics.px(3));
    const float from = at.x + place.labels, to = from + place.cells;
    draw_text(frame.fonts.sans13, {from - frame.metrics.px(8), middle}, Align::right_middle,
              frame.palette.dim,
              shortened(frame.fonts.sans13, p.rows[i], place.labels - frame.metrics.px(10)));
    draw_rect({from, middle - half}, {to, middle + half}, frame.palette.control.rest);
    if (std::isfinite(v) && v > 0)
      draw_rect({from, middle - half},
                {from + (to - from) * static_cast<float>(std::min(v, 1.0)), middle + half},
                render::color_at(render::ColorMap::weights, frame.palette.dark, std::max(v, 0.15)));
    draw_text(frame.fonts.mono13, {to - frame.metrics.px(6), middle}, Align::right_middle, frame.palette.text,
              fixed(v, 2));
  }
}

void draw_cells(const Frame& frame, const PictureLayout& place, const std::string& name, ImVec2 at,
                float row) {
  const ExhibitPicture& p = *place.picture;
  const OtherNumbers numbers{.numbers = &p.numbers,
                             .version = frame.lesson->version,
                             .ends = ends_of(p),
                             .rows = &p.rows,
                             .columns = p.columns.empty() ? nullptr : &p.columns};
  Heatmap map;
  map.place = name;
  map.stage = style_stage(p);
  map.width = static_cast<int>(place.cells);
  map.height = static_cast<int>(std::max(1.0f, row * static_cast<float>(p.numbers.n_rows)));
  map.label_width = place.labels;
  map.show_bar = false;
  map.other = &numbers;
  draw_heatmap(frame, map, at);
}

void draw_picture(const Frame& frame, const PictureLayout& place, const std::string& name, ImVec2 at,
                  float row) {
  const ExhibitPicture& p = *place.picture;
  draw_text(frame.fonts.sans15, {at.x, centered_y(frame.fonts.sans15, at.y, frame.metrics.px(title_height))},
            frame.palette.text, p.title);
  const ImVec2 labels(at.x, at.y + frame.metrics.px(title_height)),
      cells(at.x, labels.y + frame.metrics.px(labels_height));
  if (p.shading == ExhibitShading::bars)
    draw_bars(frame, place, cells, row);
  else
    draw_cells(frame, place, name, labels, row);
  const float bottom = cells.y + row * static_cast<float>(p.numbers.n_rows);
  if (row >= frame.metrics.px(13))
    for (std::size_t i = 0; i < p.ends.size(); ++i)
      draw_text(frame.fonts.sans14,
                {at.x + place.labels + place.cells + frame.metrics.px(12),
                 cells.y + (static_cast<float>(i) + 0.5f) * row},
                Align::left_middle, frame.palette.text, shortened(frame.fonts.sans14, p.ends[i], place.ends));
  frame.landmarks.mark(name, {at.x, at.y}, {at.x + place.width(), bottom});
  if (p.note.empty()) return;
  draw_text(frame.fonts.sans14,
            {at.x + place.labels, bottom + frame.metrics.px(note_height) / 2 + frame.metrics.px(2)},
            Align::left_middle, frame.palette.dim, p.note);
}

std::size_t max_rows(const std::vector<ExhibitPicture>& pictures) {
  std::size_t rows = 0;
  for (const ExhibitPicture& p : pictures) rows = std::max<std::size_t>(rows, p.numbers.n_rows);
  return rows;
}

float height_without_cells(const Frame& frame) {
  return frame.metrics.px(2 * edge + title_height + labels_height + note_height);
}

}  // namespace

float lesson_pictures_height(const Frame& frame, float most) {
  if (!frame.lesson || frame.lesson->pictures.empty()) return 0;
  const float rows = static_cast<float>(max_rows(frame.lesson->pictures));
  return std::min(height_without_cells(frame) + rows * frame.metrics.px(max_row_height), most);
}

void draw_lesson_pictures(const Frame& frame) {
  const std::vector<ExhibitPicture>& pictures = frame.lesson->pictures;
  const ImVec2 at = ImGui::GetCursorScreenPos(), room = ImGui::GetContentRegionAvail();
  const auto [window, far] = window_rect();
  ImGui::PushClipRect(window, far, false);
  draw_rect({window.x, far.y - 1}, far, frame.palette.line);
  ImGui::PopClipRect();
  const float rows = static_cast<float>(std::max<std::size_t>(1, max_rows(pictures)));
  const float row = std::clamp(std::floor((far.y - window.y - height_without_cells(frame)) / rows),
                               frame.metrics.px(min_row_height), frame.metrics.px(max_row_height));
  const float gap = frame.metrics.px(picture_gap), n = static_cast<float>(pictures.size());
  const float share = (room.x - gap * (n - 1)) / n;
  float x = at.x;
  for (std::size_t k = 0; k < pictures.size(); ++k) {
    const PictureLayout place = lay_out_picture(frame, pictures[k], share, row);
    draw_picture(frame, place, "exhibit/" + std::to_string(k), {x, at.y}, row);
    x += place.width() + gap;
  }
  reserve_room(at, {room.x, std::max(1.0f, room.y)});
}

}  // namespace app::panels
