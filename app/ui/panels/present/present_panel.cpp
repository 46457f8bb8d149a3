#include "app/ui/panels/present/present_panel.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "app/session/navigation.hpp"
#include "app/theme/imgui_compat.hpp"
#include "app/ui/actions/actions.hpp"
#include "app/ui/panels/bars/bars.hpp"
#include "app/ui/panels/lessons/lesson_panel.hpp"
#include "app/ui/panels/menus/menus.hpp"
#include "app/ui/widgets/cell_words.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/fields.hpp"
#include "app/ui/widgets/heatmap/heatmap_view.hpp"
#include "core/graph/graph.hpp"
#include "core/graph/stages.hpp"
#include "core/graph/words.hpp"

namespace app::panels {

namespace {

using core::attention::Columns;
using core::attention::RowTokens;
using core::attention::StageInfo;
using core::explain::SourceCell;
using core::explain::SourceRect;

/// A stage's map on the screen, and the part of its cells that is displayed.
struct DisplayedMap {
  Rect rect;
  CellWindow part;
  /// Return where a column or a row begins, in pixels; beyond the map if it is not displayed.
  float x(double column) const;
  float y(double row) const;
};

/// Two smoothly joined curves: from a cell up and over to a gap between rows, then along it into the target.
struct OperandPath {
  std::array<ImVec2, 7> points;  ///< start, two control points, joint, two control points, end
  /// Returns the point at t, 0 … 1, half of it along each curve.
  ImVec2 at(float t) const;
};

constexpr float uncomputed_opacity = 0.86f, reused_opacity = 0.6f;  // opacity of the cover over a cell

/// Dims cells from one row and column to before another, if the map displays them.
void dim_cells(const Frame& frame, const DisplayedMap& map, std::size_t top, std::size_t bottom,
               std::size_t left, std::size_t right, float opacity) {
  const ImVec2 min{map.x(static_cast<double>(left)), map.y(static_cast<double>(top))},
      max{map.x(static_cast<double>(right)), map.y(static_cast<double>(bottom))};
  if (min.x < max.x && min.y < max.y) draw_rect(min, max, packed(frame.palette.background.back, opacity));
}

/// Prefix of a map's landmark, and whether zooming leaves the map whole.
struct MapPlace {
  const char* before_name;
  bool shows_all;
};

constexpr std::array map_places{MapPlace{"present/", true}, MapPlace{"present/from/", true},
                                MapPlace{"large/", false}, MapPlace{"strip/", false}};

float interpolate(float low, float high, double at, double first, double end) {
  return std::round(low + static_cast<float>((at - first) / (end - first)) * (high - low));
}

float DisplayedMap::x(double column) const {
  return interpolate(rect.min.x, rect.max.x, column, part.left, part.right);
}

float DisplayedMap::y(double row) const {
  return interpolate(rect.min.y, rect.max.y, row, part.top, part.bottom);
}

/// Returns the map of a stage that is presented, an operand, alone or in the strip, if it is on the screen.
std::optional<DisplayedMap> displayed_map(const Frame& frame, const core::attention::StageInfo& stage) {
  const auto size = core::attention::shape_of(frame.displayed.model, stage.stage);
  const MatrixShape shape{size.n_rows, size.n_cols};
  for (const MapPlace& place : map_places)
    if (const auto rect = frame.landmarks.find(std::string(place.before_name) + stage.name))
      return DisplayedMap{*rect,
                          place.shows_all ? all_cells(shape) : displayed_window(frame.displayed.look, shape)};
  return std::nullopt;
}

void mark_stage(const Frame& frame, const StageInfo& stage, std::size_t now) {
  if (stage.rows != RowTokens::queries && stage.rows != RowTokens::keys) return;
  if (!frame.displayed.has(stage.stage)) return;
  const auto map = displayed_map(frame, stage);
  if (!map) return;
  const auto [n_rows, n_columns] = core::attention::shape_of(frame.displayed.model, stage.stage);
  ImGui::PushClipRect(map->rect.min, map->rect.max, true);
  if (stage.rows == RowTokens::queries) dim_cells(frame, *map, 0, now, 0, n_columns, reused_opacity);
  dim_cells(frame, *map, now + 1, n_rows, 0, n_columns, uncomputed_opacity);
  if (stage.columns == Columns::tokens)
    dim_cells(frame, *map, now, now + 1, now + 1, n_columns, uncomputed_opacity);
  ImGui::PopClipRect();
  const float thick = frame.metrics.px(2), top = map->y(static_cast<double>(now)),
              bottom = map->y(static_cast<double>(now + 1));
  if (top < map->rect.min.y || bottom > map->rect.max.y) return;
  outline({map->rect.min.x - thick, top - thick}, {map->rect.max.x + thick, bottom + thick},
          frame.palette.accent, thick);
  frame.landmarks.mark(std::string("decode/new/") + stage.name, {map->rect.min.x, top},
                       {map->rect.max.x, bottom});
}

bool shows_decoding(const Frame& frame) {
  return frame.displayed.look.positions.decoded && frame.displayed.look.tab == Tab::stages &&
         !frame.displayed.look.large && !frame.displayed.selection.presentation.on;
}

/// Returns "Token 3 of 6, “journey”: 2 keys and values are cached, 1 is new".
std::string decoding_words(const Frame& frame, std::size_t now) {
  const auto& tokens = frame.displayed.sequence().tokens;
  const std::string which =
      fmt::format("Token {} of {}, “{}”: ", now + 1, frame.displayed.model.n_tokens(), tokens[now]);
  if (now == 0) return which + "its key and value are the first in the cache";
  return which + std::to_string(now) +
         (now == 1 ? " key and value is cached, 1 is new" : " keys and values are cached, 1 is new");
}

/// Draws the line above a bar and moves the cursor to its first button.
void begin_bar(const Frame& frame) {
  const auto [min, max] = window_rect();
  draw_rect(min, {max.x, min.y + 1}, frame.palette.line);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  platform::move_to({at.x, at.y + frame.metrics.px(6)});
}

/// Draws words after the last button of a bar, and marks them if they have a name.
void end_bar(const Frame& frame, Rgb color, const std::string& words, const char* name = nullptr) {
  ImGui::SameLine();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float x = at.x + frame.metrics.px(8),
              room = std::max(1.0f, ImGui::GetContentRegionAvail().x - frame.metrics.px(8));
  draw_text(frame.fonts.sans14, {x, at.y + frame.metrics.frame / 2}, Align::left_middle, color,
            shortened(frame.fonts.sans14, words, room));
  if (name) frame.landmarks.mark(name, {x, at.y}, {x + room, at.y + frame.metrics.frame});
}

ImVec2 bezier(ImVec2 a, ImVec2 b, ImVec2 c, ImVec2 d, float t) {
  const float s = 1 - t;
  const float p = s * s * s, q = 3 * s * s * t, r = 3 * s * t * t, u = t * t * t;
  return {p * a.x + q * b.x + r * c.x + u * d.x, p * a.y + q * b.y + r * c.y + u * d.y};
}

ImVec2 OperandPath::at(float t) const {
  const auto& p = points;
  return t < 0.5f ? bezier(p[0], p[1], p[2], p[3], 2 * t) : bezier(p[3], p[4], p[5], p[6], 2 * t - 1);
}

}  // namespace

void draw_decoding_marks(const Frame& frame) {
  if (!shows_decoding(frame)) return;
  for (const StageInfo& stage : core::attention::stages())
    mark_stage(frame, stage, *frame.displayed.look.positions.decoded);
}

float decoding_bar_height(const Frame& frame) {
  return shows_decoding(frame) ? frame.metrics.px(36) : 0;
}

void draw_decoding_bar(const Frame& frame) {
  const auto& now = frame.displayed.look.positions.decoded;
  if (!now) return;
  begin_bar(frame);
  const ActionContext context = situation_of(frame);
  const std::vector<Action> all = actions(context);
  draw_action_button(frame, context, all, "decode/back", "decode/back", "previous token");
  ImGui::SameLine();
  draw_action_button(frame, context, all, "decode/on", "decode/on", "next token");
  ImGui::SameLine();
  draw_action_button(frame, context, all, "decode/close", "decode/close", "all at once");
  end_bar(frame, frame.palette.text, decoding_words(frame, *now), "decode/words");
}

std::optional<Rect> cell_rect(const Frame& frame, const core::explain::SourceCell& place) {
  const Stage* stage = std::get_if<Stage>(&place.source);
  if (!stage) return std::nullopt;
  const core::attention::StageInfo& info = core::attention::info(*stage);
  if (info.per_head &&
      core::attention::matrix_of_head(frame.displayed.model, *stage, place.head) !=
          core::attention::matrix_of_head(frame.displayed.model, *stage, frame.displayed.look.head))
    return std::nullopt;
  const auto map = displayed_map(frame, info);
  if (!map) return std::nullopt;
  const auto row = static_cast<double>(place.row), column = static_cast<double>(place.column);
  const CellWindow& part = map->part;
  if (row + 0.5 < part.top || row + 0.5 > part.bottom || column + 0.5 < part.left ||
      column + 0.5 > part.right)
    return std::nullopt;
  return Rect{{map->x(column), map->y(row)}, {map->x(column + 1), map->y(row + 1)}};
}

namespace {

/// Returns the path from one cell to another; k of n separates the paths of several numbers.
OperandPath path_between(const Frame& frame, const Rect& from, const Rect& to, std::size_t k, std::size_t n) {
  const auto px = [&](float length) { return frame.metrics.px(length); };
  const float share = n > 1 ? static_cast<float>(k) / static_cast<float>(n - 1) : 0;
  const ImVec2 start{(from.min.x + from.max.x) / 2, from.min.y};
  const ImVec2 end{to.min.x + std::min(px(6), (to.max.x - to.min.x) * 0.2f),
                   to.min.y + std::min(px(5), (to.max.y - to.min.y) * 0.3f)};
  // Paths enter along the gap above the target's row, from either side.
  const bool from_left = start.x <= end.x;
  const float side = from_left ? -1.0f : 1.0f;
  const float far = std::abs(end.x - start.x);
  const float lane = to.min.y - px(1);
  const ImVec2 meet{end.x + side * std::clamp(far * 0.45f, px(8), std::max(px(8), far - px(12))), lane};
  // They rise by a part of the cell, below the labels above its map, before they reach that gap.
  const float lift = (from.max.y - from.min.y) * (0.25f + 0.25f * (1 - share));
  const float run = std::max(px(8), std::abs(meet.x - start.x) * 0.2f);
  const ImVec2 up{start.x, start.y - lift};
  const ImVec2 before{meet.x + side * run, meet.y};
  const float last = std::abs(end.x - meet.x);
  const ImVec2 after{meet.x - side * last * 0.45f, meet.y};
  const ImVec2 into{end.x + side * last * 0.3f, end.y - px(2)};
  return {{start, up, before, meet, after, into, end}};
}

constexpr std::size_t max_operands = 12;  // more would be cluttered
constexpr float line_width = 1.5f, past_opacity = 0.75f, future_opacity = 0.35f;
constexpr double moving_share = 0.8;  // of a step; then the numbers have arrived

/// Returns the operands of a cell that are on the screen, at most max_operands.
std::vector<SourceCell> displayed_operands(const Frame& frame, const CellRef& to) {
  std::vector<SourceCell> places;
  for (const SourceRect& cells : core::explain::operands(frame.displayed, to))
    for (std::size_t k = 0; k < cells.count() && places.size() < max_operands; ++k)
      if (cell_rect(frame, cells.at(k))) places.push_back(cells.at(k));
  return places;
}

void draw_path(ImDrawList* list, const OperandPath& path, float t, Rgb color) {
  constexpr int pieces = 48;
  for (int k = 0; k < pieces; ++k) {
    const float a = static_cast<float>(k) / pieces, b = static_cast<float>(k + 1) / pieces;
    list->AddLine(path.at(a), path.at(b), packed(color, b <= t ? past_opacity : future_opacity), line_width);
  }
}

/// Returns the box of a moving number at a position.
Rect box_of(const Frame& frame, ImVec2 at, const std::string& text) {
  ImFont* font = frame.fonts.mono13;
  const float half = text_width(font, text) / 2 + frame.metrics.px(4),
              high = platform::font_size(font) / 2 + frame.metrics.px(2);
  return {{std::round(at.x - half), std::round(at.y - high)},
          {std::round(at.x + half), std::round(at.y + high)}};
}

bool overlap(const Rect& a, const Rect& b) {
  return a.min.x < b.max.x && b.min.x < a.max.x && a.min.y < b.max.y && b.min.y < a.max.y;
}

void draw_number(const Frame& frame, ImDrawList* list, const Rect& box, const std::string& text,
                 std::size_t k) {
  ImFont* font = frame.fonts.mono13;
  const auto& [min, max] = box;
  list->AddRectFilled(min, max, packed(frame.palette.background.back, 0.92f), frame.metrics.px(2));
  list->AddText(font, platform::font_size(font),
                {std::round(min.x + frame.metrics.px(4)), std::round(min.y + frame.metrics.px(2))},
                packed(frame.palette.operand), text.c_str());
  frame.landmarks.mark("flight/number/" + std::to_string(k), min, max);
}

/// Returns a share of time as a share of the path, slow at both ends.
float eased(double t) {
  const double s = std::clamp(t, 0.0, 1.0);
  return static_cast<float>(s * s * (3 - 2 * s));
}

void advance_animation(const Frame& frame, const AnimationStep& current_step) {
  const auto& operand_animation = frame.displayed.selection.presentation.operand_animation;
  if (!operand_animation->is_running || frame.settings.reduce_motion) return;
  const double by =
      static_cast<double>(ImGui::GetIO().DeltaTime) * frame.settings.animation_speed / animation_step_seconds;
  frame.commands.add(AdvanceAnimation{std::min(by, 0.25), current_step.count});
}

/// Returns the current step of the animation: "1 of 3   Scaled → Masked 0.1234", or "".
std::string animation_words(const Frame& frame) {
  const auto current_step = current_animation_step(frame.displayed);
  if (!current_step) return "";
  const auto& to = core::attention::info(current_step->to.stage);
  std::string from;
  for (const SourceRect& cells : core::explain::operands(frame.displayed, current_step->to)) {
    const Stage* stage = std::get_if<Stage>(&cells.source);
    const std::string name = stage ? core::attention::info(*stage).title : "";
    if (!name.empty() && from.find(name) == from.npos) from += (from.empty() ? "" : ", ") + name;
  }
  return fmt::format("{} of {}   {}{} {}", current_step->index + 1, current_step->count,
                     from.empty() ? "" : from + " → ", to.title,
                     fixed(frame.displayed.trace.at(to.stage, current_step->to.head)(current_step->to.row,
                                                                                     current_step->to.column),
                           4));
}

}  // namespace

void draw_animation(const Frame& frame) {
  const auto current_step = current_animation_step(frame.displayed);
  if (!current_step || frame.forms.dialog != Dialog::none) return;
  advance_animation(frame, *current_step);
  const auto target = cell_rect(
      frame, {current_step->to.stage, current_step->to.head, current_step->to.row, current_step->to.column});
  if (!target) return;
  ImDrawList* list = ImGui::GetForegroundDrawList();
  const auto region = frame.landmarks.find("region/stages");
  if (region) list->PushClipRect(region->min, region->max);
  const std::vector<SourceCell> places = displayed_operands(frame, current_step->to);
  const double t = current_step->share / moving_share;
  const bool arrived = t >= 1;
  std::vector<Rect> occupied;
  for (std::size_t k = 0; k < places.size() && !arrived; ++k) {
    const OperandPath path = path_between(frame, *cell_rect(frame, places[k]), *target, k, places.size());
    const double wait = 0.25 * static_cast<double>(k) / static_cast<double>(places.size());
    const float along = eased((t - wait) / 0.75);
    draw_path(list, path, along, frame.palette.operand);
    const auto& info = core::attention::info(std::get<Stage>(places[k].source));
    const double value =
        frame.displayed.trace.at(info.stage, places[k].head)(places[k].row, places[k].column);
    // If two would overlap, the later one waits behind, or in its cell.
    const std::string text = fixed(value, 4);
    for (float at = along; at >= 0; at -= 0.01f) {
      const Rect box = box_of(frame, path.at(at), text);
      if (std::ranges::any_of(occupied, [&](const auto& other) { return overlap(box, other); })) continue;
      draw_number(frame, list, box, text, k);
      occupied.push_back(box);
      break;
    }
  }
  const float thick = frame.metrics.px(2);
  outline({target->min.x - thick, target->min.y - thick},
          {target->max.x + thick - 1, target->max.y + thick - 1},
          packed(frame.palette.operand, arrived ? 1.0f : 0.5f), thick, list);
  frame.landmarks.mark("flight/target", target->min, target->max);
  if (region) list->PopClipRect();
}

float animation_bar_height(const Frame& frame) {
  const auto& presentation = frame.displayed.selection.presentation;
  return presentation.operand_animation && !presentation.on ? frame.metrics.px(36) : 0;
}

void draw_animation_bar(const Frame& frame) {
  begin_bar(frame);
  const ActionContext context = situation_of(frame);
  const std::vector<Action> all = actions(context);
  const bool is_running = frame.displayed.selection.presentation.operand_animation &&
                          frame.displayed.selection.presentation.operand_animation->is_running;
  draw_action_button(frame, context, all, "flight/back", "flight/back", "back");
  ImGui::SameLine();
  draw_action_button(frame, context, all, "flight/play", is_running ? "flight/stop" : "flight/play",
                     is_running ? "stop" : "play");
  ImGui::SameLine();
  draw_action_button(frame, context, all, "flight/on", "flight/on", "on");
  ImGui::SameLine();
  const float speed = frame.settings.animation_speed;
  const auto change = [&](const char* name, const char* words, float factor, const char* help) {
    if (button(frame, name, words, help))
      frame.commands.add(set<&Settings::animation_speed>(std::clamp(speed * factor, 0.25f, 4.0f)));
    ImGui::SameLine();
  };
  change("flight/slower", "slower", 0.5f, "Half as fast, down to a quarter");
  change("flight/faster", "faster", 2, "Twice as fast, up to four times");
  if (button(frame, "flight/close", "close", "Closes the animation (Esc)"))
    frame.commands.add(set<&Presentation::operand_animation>(std::nullopt));
  end_bar(frame, frame.palette.dim, animation_words(frame) + "   speed " + fixed(speed * 100, 0) + " %");
}

namespace {

constexpr float card_width = 208, card_height = 240, card_gap = 14;  // of its text, and about; at scale 1

/// Returns the position of a card of that size over the side panel next to its target, or over the other one
/// if the target is in that panel.
ImVec2 card_position(const Frame& frame, const Rect& target, ImVec2 size) {
  const ImVec2 window = ImGui::GetIO().DisplaySize, middle = target.center();
  const float gap = frame.metrics.px(card_gap), top = frame.metrics.menu + gap;
  const auto is_in = [&](const char* panel) {
    const auto rect = frame.landmarks.find(panel);
    return rect && middle.y > top && middle.x > rect->min.x && middle.x < rect->max.x;
  };
  const bool is_at_right = middle.x > window.x / 2 ? !is_in("region/inspector") : is_in("region/edit");
  const float lowest = window.y - frame.metrics.status - gap - size.y;
  return {is_at_right ? window.x - gap - size.x : gap,
          std::clamp(middle.y - size.y / 2, top, std::max(top, lowest))};
}

/// Draws a line from a card to its target.
void draw_pointer(const Frame& frame, const Rect& card, const Rect& target) {
  const auto nearest = [](const Rect& rect, ImVec2 to) {
    return ImVec2(std::clamp(to.x, rect.min.x, rect.max.x), std::clamp(to.y, rect.min.y, rect.max.y));
  };
  const ImVec2 end = nearest(target, card.center());
  ImGui::GetForegroundDrawList()->AddLine(nearest(card, end), end, packed(frame.palette.accent));
}

void draw_card(const Frame& frame, const TourStep& step, std::size_t index, bool is_last) {
  const float width = frame.metrics.px(card_width);
  paragraph(frame.fonts.sans14, frame.palette.dim, width,
            fmt::format("Tour, {} of {}", index + 1, tour_steps().size()));
  paragraph(frame.fonts.sans17, frame.palette.text, width, step.title);
  paragraph(frame.fonts.sans15, frame.palette.text, width, step.words);
  ImGui::Dummy({width, frame.metrics.px(4)});
  if (button(frame, "tour/next", is_last ? "Done" : "Next", "Skips this step"))
    frame.commands.add(AdvanceTour{});
  if (is_last) return;
  ImGui::SameLine();
  if (button(frame, "tour/skip", "Skip the tour", "Help → Take the tour starts it again"))
    frame.commands.add(LeaveTour{});
}

}  // namespace

void draw_tour(const Frame& frame) {
  const auto& tour = frame.pending.selection.tour;
  if (!tour || frame.lesson || frame.displayed.selection.presentation.on) return;
  const TourStep& step = tour_steps()[tour->step];
  const bool is_last = tour->step + 1 == tour_steps().size();
  if (step.done(frame.pending.selection, frame.pending.look, frame.forms.dialog, frame.pending.model)) {
    // A number that is being dragged is not interrupted.
    if (!ImGui::IsAnyItemActive()) frame.commands.add(AdvanceTour{});
    return;
  }
  if (frame.forms.dialog != Dialog::none) return;
  const auto place = frame.landmarks.find(step.place);
  const Rect rect = place.value_or(Rect{{0, 0}, {0, 0}});
  const float margin = frame.metrics.px(3);
  if (place)
    outline({rect.min.x - margin, rect.min.y - margin}, {rect.max.x + margin, rect.max.y + margin},
            frame.palette.accent, 2, ImGui::GetForegroundDrawList());
  const ImVec2 guess{frame.metrics.px(card_width + 24), frame.metrics.px(card_height)};
  ImGui::SetNextWindowPos(card_position(frame, rect, guess), ImGuiCond_Always);
  begin_note(frame, "tour", frame.palette.accent);
  draw_card(frame, step, tour->step, is_last);
  const auto [min, max] = window_rect();
  frame.landmarks.mark("tour/card", min, max);
  ImGui::End();
  if (place) draw_pointer(frame, {min, max}, rect);
}

namespace {

/// Draws a key cap with words after it, ending at `right`; returns the right end of the next one.
float draw_cap(const Frame& frame, float right, float middle, const char* key, const char* words) {
  ImFont* font = frame.fonts.sans12;
  const float gap = frame.metrics.px(6), words_width = *words ? text_width(font, words) + gap : 0;
  const float left = right - key_cap_width(frame, font, key) - words_width;
  const float cap = draw_key_cap(frame, font, {left, middle}, key, frame.palette.control.rest);
  draw_text(font, {left + cap + gap, middle}, Align::left_middle, frame.palette.dim, words);
  return left - frame.metrics.px(8);
}

/// Returns whether all heads of a whole model are presented, and not a stage.
bool presents_heads(const Frame& frame) {
  return frame.pending.full_model && frame.displayed.look.tab == Tab::layers;
}

/// Returns the presented cell: the target of the animation, else the pinned one.
std::optional<CellRef> presented_cell(const Frame& frame) {
  const auto current_step = current_animation_step(frame.displayed);
  return current_step ? current_step->to : frame.displayed.selection.pinned;
}

/// Returns whether one stage is presented, or one of all heads.
bool presents_one_stage(const Frame& frame) {
  const Tab tab = frame.displayed.look.tab;
  return tab == Tab::stages || tab == Tab::heads;
}

/// Returns the presented stage: of the Heads view, the animation, the pinned cell or the lesson's step, else
/// the one shown large, or the weights.
Stage presented_stage(const Frame& frame) {
  const auto present = [&](Stage stage) { return frame.displayed.has(stage); };
  if (frame.displayed.look.tab == Tab::heads && present(frame.displayed.look.heads_stage))
    return frame.displayed.look.heads_stage;
  if (const auto cell = presented_cell(frame); cell && present(cell->stage)) return cell->stage;
  if (frame.lesson)
    for (const std::string_view name : frame.lesson->shown().focus)
      if (name.starts_with("strip/"))
        if (const auto* stage = core::attention::find_stage(name.substr(6)); stage && present(stage->stage))
          return stage->stage;
  if (frame.displayed.look.large && present(*frame.displayed.look.large)) return *frame.displayed.look.large;
  if (present(Stage::weights)) return Stage::weights;
  for (const StageInfo& stage : core::attention::stages())
    if (frame.displayed.has(stage.stage)) return stage.stage;
  return Stage::weights;
}

/// Returns the number, from 1, and the count of lesson steps, else of layers, else of stages.
std::pair<std::size_t, std::size_t> index_and_count(const Frame& frame) {
  if (frame.lesson) return {frame.lesson->step + 1, frame.lesson->lesson->steps.size()};
  if (presents_heads(frame))
    return {frame.pending.full_model->experiment.layer + 1,
            frame.pending.full_model->model->description().sizes.n_layers};
  std::size_t index = 0, count = 0;
  for (const auto& stage : core::attention::stages())
    if (frame.displayed.has(stage.stage)) {
      ++count;
      if (stage.stage == presented_stage(frame)) index = count;
    }
  return {index, count};
}

/// Returns position and title of the lesson's step, else of the view, the animation or the stage.
std::pair<std::string, std::string> position_and_title(const Frame& frame) {
  if (presents_heads(frame) && !frame.lesson) {
    const std::size_t layer = frame.pending.full_model->experiment.layer;
    return {fmt::format("layer {}", layer), fmt::format("head {}.{}", layer, frame.pending.look.head)};
  }
  const auto [index, count] = index_and_count(frame);
  const std::string place = fmt::format("{} of {}", index, count);
  if (frame.lesson) return {place, frame.lesson->shown().title};
  if (!presents_one_stage(frame)) return {"", tab_title(frame.displayed.look.tab).title};
  if (const std::string words = animation_words(frame); !words.empty()) return {"", words};
  return {place, core::attention::info(presented_stage(frame)).title};
}

/// Returns whether arrows lead on: through stages, or the steps of a lesson.
bool has_steps(const Frame& frame) {
  return frame.lesson || presents_heads(frame) || presents_one_stage(frame);
}

float share_done(const Frame& frame) {
  const auto [index, count] = index_and_count(frame);
  if (!has_steps(frame)) return 0;
  return count > 0 ? static_cast<float>(index) / static_cast<float>(count) : 0;
}

/// Draws the hovered, else the pinned cell, "starts attends to journey 0.3403"; returns its padded left end.
float draw_cell_caption(const Frame& frame, float right, float middle, float room) {
  const auto& cell = frame.displayed.selection.hovered ? frame.displayed.selection.hovered
                                                       : frame.displayed.selection.pinned;
  if (!cell) return right;
  const CellDescription words = describe_cell(frame, *cell);
  const std::string value = fixed(cell_value(frame, *cell), 4);
  ImFont *sans = frame.fonts.sans12, *mono = frame.fonts.mono12;
  const std::string text = shortened(sans, words.subject + words.relation + words.object, room);
  float x = right - draw_text(mono, {right, middle}, Align::right_middle, frame.palette.text, value) -
            frame.metrics.px(8);
  x -= draw_text(sans, {x, middle}, Align::right_middle, frame.palette.text, text);
  frame.landmarks.mark("present/named", {x, middle - 10}, {right, middle + 10});
  return x - frame.metrics.px(20);
}

}  // namespace

float presented_heading_height(const Frame& frame) {
  if (presents_heads(frame)) return 0;  // a lesson is next to its maps
  const float width = ImGui::GetIO().DisplaySize.x - 2 * frame.metrics.padding;
  return frame.metrics.px(14) +
         (frame.lesson ? presented_lesson_height(frame, width) : platform::font_size(frame.fonts.sans16));
}

void draw_presented_heading(const Frame& frame) {
  if (frame.lesson) return draw_presented_lesson(frame, ImGui::GetContentRegionAvail().x);
  const TabTitle& tab = tab_title(frame.displayed.look.tab);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const std::string title =
      tab.tab == Tab::heads ? core::attention::info(presented_stage(frame)).title : tab.title;
  const float x = at.x + draw_text(frame.fonts.sans16, at, Align::left_top, frame.palette.text, title) +
                  frame.metrics.px(10);
  const std::string about = tab.tab == Tab::stages ? core::explain::describe_line(
                                                         frame.displayed, frame.displayed.look.head,
                                                         core::attention::info(presented_stage(frame)).line)
                                                   : tab.about;
  draw_text(frame.fonts.sans12, {x, at.y + baseline_drop(frame.fonts.sans16, frame.fonts.sans12)},
            Align::left_top, frame.palette.dim, about);
  frame.landmarks.mark("present/heading", at,
                       {x + text_width(frame.fonts.sans12, about), at.y + frame.metrics.px(16)});
}

float present_bar_height(const Frame& frame) {
  return frame.displayed.selection.presentation.on ? frame.metrics.px(32) : 0;
}

void draw_present_bar(const Frame& frame) {
  const auto [at, far] = window_rect();
  const float width = far.x - at.x, middle = (at.y + far.y) / 2;
  const ImVec2 progress{at.x + width * share_done(frame), at.y + std::max(2.0f, frame.metrics.px(1.5f))};
  ImGui::PushClipRect(at, far, false);  // the progress bar extends from edge to edge
  draw_rect(at, far, frame.palette.background.panel);
  draw_rect(at, {far.x, progress.y}, frame.palette.line);
  draw_rect(at, progress, frame.palette.accent);
  frame.landmarks.mark("present/progress", at, progress);
  float right = draw_cell_caption(frame, far.x - frame.metrics.px(26), middle, width * 0.22f);
  right = draw_cap(frame, right, middle, "F5", "back");
  if (frame.displayed.selection.pinned && !frame.settings.reduce_motion)
    right = draw_cap(frame, right, middle, "space", "plays");
  if (has_steps(frame)) right = draw_cap(frame, right, middle, "← →", "");
  const auto [place, words] = position_and_title(frame);
  float x = at.x + frame.metrics.px(26);
  ImFont* font = frame.fonts.sans12;
  x += draw_text(font, {x, middle}, Align::left_middle, frame.palette.dim, place);
  if (!place.empty()) x += frame.metrics.px(12);
  draw_text(font, {x, middle}, Align::left_middle, frame.palette.text,
            shortened(font, words, std::max(1.0f, right - x)));
  ImGui::PopClipRect();
  frame.landmarks.mark("present/bar", at, far);
}

namespace {

// At scale 1, at which the screen is 500 high.
constexpr float edge = 40, left_share = 0.31f, max_cell_width = 60, max_cell_height = 45,
                small_cell_width = 38, small_cell_height = 21, min_cell_width = 28, labels_room = 64,
                title_room = 26, top_room = 10;

/// Returns the width of a title with its formula and head.
float title_width(const Frame& frame, Stage stage, ImFont* font) {
  const StageInfo& info = core::attention::info(stage);
  const float gap = frame.metrics.px(10);
  float width =
      text_width(font, info.title) + gap +
      formula_width(frame.fonts.sans12,
                    core::graph::formula(frame.displayed.graph, frame.displayed.model, info.stage, true));
  const std::string head = head_words(frame.displayed.model, stage, frame.displayed.look.head);
  if (frame.displayed.model.n_heads > 1 && !head.empty()) width += gap + text_width(frame.fonts.sans12, head);
  return width;
}

/// Draws the title of a map; if `whole`, with its formula and head.
void draw_title(const Frame& frame, Stage stage, ImFont* font, ImVec2 at, bool whole = true) {
  const StageInfo& info = core::attention::info(stage);
  const float width = text_width(font, info.title);
  draw_text(font, at, Align::left_top, frame.palette.text, info.title);
  const float lowered =
      std::round(0.797f * (platform::font_size(font) - platform::font_size(frame.fonts.sans12)));
  const float end = at.x + width + frame.metrics.px(10);
  const float formula = !whole ? 0
                               : draw_formula(frame.fonts.sans12, {end, at.y + lowered}, frame.palette.dim,
                                              core::graph::formula(frame.displayed.graph,
                                                                   frame.displayed.model, info.stage, true));
  const std::string head = head_words(frame.displayed.model, stage, frame.displayed.look.head);
  if (whole && frame.displayed.model.n_heads > 1 && !head.empty())
    draw_text(frame.fonts.sans12, {end + formula + frame.metrics.px(10), at.y + lowered}, Align::left_top,
              frame.palette.faint, head);
  platform::move_to(at);
  hit_area((std::string("present/title/") + info.name).c_str(), {width, platform::font_size(font)});
  frame.landmarks.mark_item(std::string("present/title/") + info.name);
  draw_stage_menu(frame, "present", stage, frame.displayed.look.head);
}

/// Returns a map at most as large as its room, with cells of whole pixels if they are large enough.
Heatmap map_of(const Frame& frame, const char* place, Stage stage, ImVec2 room, ImVec2 largest) {
  const StageInfo& info = core::attention::info(stage);
  const auto& numbers = frame.displayed.trace.at(info.stage, frame.displayed.look.head);
  Heatmap map;
  map.place = std::string(place) + info.name;
  map.stage = stage;
  map.head = frame.displayed.look.head;
  map.width = cells_length(room.x, numbers.n_cols(), largest.x, 2);
  map.height = cells_length(room.y, numbers.n_rows(), largest.y, 2);
  map.whole = true;
  return map;
}

/// Returns the stages of the operands of a cell, each once.
std::vector<Stage> sources_of(const Frame& frame, const CellRef& cell) {
  std::vector<Stage> sources;
  for (const auto& cells : core::explain::operands(frame.displayed, cell))
    if (const Stage* stage = std::get_if<Stage>(&cells.source);
        stage && std::ranges::find(sources, *stage) == sources.end())
      sources.push_back(*stage);
  return sources;
}

/// Returns the steps that compute the cell from its direct operands.
core::explain::Explanation last_steps(const Frame& frame, const CellRef& cell) {
  core::explain::Explanation all = core::explain::explain(frame.displayed, cell);
  std::erase_if(all.steps, [&](const core::explain::Step& step) { return !(step.cell == cell); });
  return all;
}

/// Description and computation of a cell.
struct ExplainedCell {
  CellDescription words;
  core::explain::Explanation steps;
};

/// Returns the height at scale 1, with long sums folded.
float height_of(const ExplainedCell& explained) {
  constexpr float heading = 24, reason = 40;
  return heading + cell_steps_height(explained.steps) + (explained.words.reason.empty() ? 0 : reason);
}

/// Draws it and returns the y where it ends.
float draw_explained_cell(const Frame& frame, const ExplainedCell& explained, ImVec2 at, float width) {
  const CellDescription& words = explained.words;
  draw_cell_subject(frame, frame.fonts.sans13, at, Align::left_top, width, words);
  Pen pen{frame, at.x, at.x + width, at.y + frame.metrics.px(24)};
  draw_cell_steps(pen, explained.steps);
  if (!words.reason.empty()) pen.prose(words.reason, frame.palette.dim);
  return pen.y;
}

/// Draws the operands of the cell, and below them its computation.
void draw_operands(const Frame& frame, const CellRef& cell, ImVec2 at, ImVec2 room) {
  const Metrics& m = frame.metrics;
  const std::vector<Stage> sources = sources_of(frame, cell);
  // Narrow maps share a row if their cells are as high as those of a single map.
  const float across = (room.x - m.px(20)) / static_cast<float>(std::max<std::size_t>(1, sources.size()));
  const bool is_side_by_side =
      sources.size() > 1 && std::ranges::all_of(sources, [&](Stage source) {
        const auto columns =
            static_cast<float>(frame.displayed.trace.at(source, frame.displayed.look.head).n_cols());
        return columns * m.px(min_cell_width) + m.px(16) <= across &&
               text_width(frame.fonts.sans13, core::attention::info(source).title) <= across;
      });
  float x = at.x, y = at.y, lowest = at.y;
  const ExplainedCell explained{describe_cell(frame, cell), last_steps(frame, cell)};
  const float needed = m.px(height_of(explained));
  const float rows = is_side_by_side ? 1 : static_cast<float>(std::max<std::size_t>(1, sources.size()));
  for (const Stage source : sources) {
    const float wanted = room.y * (rows > 1 ? 0.62f : 0.46f) / rows;
    const float left = (room.y - needed) / rows;
    const float share = std::max(std::min(wanted, left) - m.px(title_room + 34), m.px(30));
    if (wanted < m.px(title_room + 34 + 30)) break;
    const float wide = is_side_by_side ? across - m.px(30) : room.x - m.px(20);
    Heatmap map = map_of(frame, "present/from/", source, {wide, share},
                         {m.px(small_cell_width), m.px(small_cell_height)});
    map.row_tokens = false;
    map.columns = ColumnLabels::indices;
    map.label_width = m.px(16);
    map.show_bar = false;
    draw_title(frame, source, frame.fonts.sans13, {x, y}, !is_side_by_side);
    const float labels = y + m.px(20);
    const float end = labels + column_label_height(frame, map) + static_cast<float>(map.height);
    draw_heatmap(frame, map, {x, labels});
    lowest = std::max(lowest, end + m.px(14));
    if (is_side_by_side)
      x += across;
    else
      y = lowest;
  }
  y = lowest;
  // Unfolded sums may be higher than the screen.
  platform::move_to({at.x - m.px(4), y});
  const float scrollbar = ImGui::GetStyle().ScrollbarSize;
  ImGui::BeginChild("worked", {room.x + m.px(8) + scrollbar, std::max(1.0f, at.y + room.y - y)}, false,
                    ImGuiWindowFlags_NoBackground);
  const ImVec2 begin = ImGui::GetCursorScreenPos();
  const float end = draw_explained_cell(frame, explained, {begin.x + m.px(4), begin.y}, room.x);
  reserve_room(begin, {1, end - begin.y});
  ImGui::EndChild();
}

}  // namespace

void draw_presented_stage(const Frame& frame) {
  const Metrics& m = frame.metrics;
  const ImVec2 origin = ImGui::GetWindowPos(), size = ImGui::GetWindowSize();
  const Stage stage = presented_stage(frame);
  const auto cell = presented_cell(frame);
  const StageInfo& info = core::attention::info(stage);
  const float left = cell ? size.x * left_share + m.px(edge) : m.px(edge) / 2;
  const float top = origin.y + m.px(top_room);
  if (cell)
    draw_operands(frame, *cell, {origin.x + m.px(edge), top + m.px(24)},
                  {size.x * left_share - m.px(edge) / 2, size.y - m.px(top_room + 24 + 8)});
  const float labels = m.px(labels_room);
  const ImVec2 room{size.x - left - labels - m.px(edge), size.y - m.px(top_room + title_room + 36 + 40)};
  Heatmap map = map_of(frame, "present/", stage, room, {m.px(max_cell_width), m.px(max_cell_height)});
  map.label_width = labels;
  map.show_bar = info.columns != Columns::single;
  const float used =
      labels + std::max(static_cast<float>(map.width), title_width(frame, stage, frame.fonts.sans17));
  const float x = origin.x + left + std::max(0.0f, (size.x - left - m.px(edge) - used) * 0.5f);
  draw_title(frame, stage, frame.fonts.sans17, {std::round(x + labels), top});
  draw_heatmap(frame, map, {std::round(x), top + m.px(title_room)});
}

}  // namespace app::panels
