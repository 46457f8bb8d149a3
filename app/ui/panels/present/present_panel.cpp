#include "app/ui/panels/present/present_panel.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "app/session/navigation.hpp"
#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/menus/menus.hpp"
#include "app/ui/panels/present/flight.hpp"
#include "app/ui/widgets/cell_words.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/fields.hpp"
#include "app/ui/widgets/heatmap/heatmap_view.hpp"
#include "app/ui/widgets/hit_area.hpp"
#include "app/ui/widgets/text.hpp"
#include "core/graph/explain.hpp"
#include "core/graph/stages.hpp"

namespace app::panels {

namespace {

/// Where maps stand, and whether zooming leaves them whole.
struct MapPlace {
  const char* before_name;
  bool shows_all;
};
constexpr std::array map_places{MapPlace{"present/", true}, MapPlace{"present/from/", true},
                                MapPlace{"large/", false}, MapPlace{"strip/", false}};

float between(float low, float high, double at, double first, double end) {
  return std::round(low + static_cast<float>((at - first) / (end - first)) * (high - low));
}

}  // namespace

float ShownMap::x(double column) const {
  return between(rect.min.x, rect.max.x, column, part.left, part.right);
}

float ShownMap::y(double row) const {
  return between(rect.min.y, rect.max.y, row, part.top, part.bottom);
}

std::optional<ShownMap> shown_map(const Frame& frame, const core::attention::StageInfo& stage) {
  const auto size = core::attention::shape_of(frame.displayed.model, stage.stage);
  const Shape shape{size.n_rows, size.n_cols};
  for (const MapPlace& place : map_places)
    if (const auto rect = frame.landmarks.find(std::string(place.before_name) + stage.name))
      return ShownMap{*rect, place.shows_all ? whole(shape) : shown_part(frame.displayed.look, shape)};
  return std::nullopt;
}

namespace {

constexpr float card_width = 320, away = 14;  // at scale 1

/// Where a card of that size stands: right of what it speaks of, else left, below or above, within the
/// window.
ImVec2 place_beside(const Frame& frame, const Landmarks::Rect& rect, ImVec2 size) {
  const ImVec2 window = ImGui::GetIO().DisplaySize;
  const float gap = frame.metrics.px(away), inset = frame.metrics.px(8);
  ImVec2 at{rect.max.x + gap, rect.min.y};
  if (at.x + size.x > window.x - inset) at.x = rect.min.x - gap - size.x;
  if (at.x < inset) at = {rect.min.x, rect.max.y + gap};
  if (at.y + size.y > window.y - inset && at.y == rect.max.y + gap) at.y = rect.min.y - gap - size.y;
  // The weights are what is to be watched: the card stands below them, where it would stand over them.
  if (const auto weights = frame.landmarks.find("strip/weights");
      weights && at.x < weights->max.x && at.x + size.x > weights->min.x && at.y < weights->max.y &&
      at.y + size.y > weights->min.y && weights->max.y + 2 * gap + size.y < window.y)
    at.y = weights->max.y + 2 * gap;
  return {std::clamp(at.x, inset, std::max(inset, window.x - size.x - inset)),
          std::clamp(at.y, inset, std::max(inset, window.y - size.y - inset))};
}

void draw_card(const Frame& frame, const TourStep& step, std::size_t index, bool is_last) {
  const float width = frame.metrics.px(card_width);
  widgets::paragraph(frame.fonts.sans14, frame.palette.dim, width,
                     "Tour, " + std::to_string(index + 1) + " of " + std::to_string(tour_steps().size()));
  widgets::paragraph(frame.fonts.sans17, frame.palette.text, width, step.title);
  widgets::paragraph(frame.fonts.sans15, frame.palette.text, width, step.words);
  ImGui::Dummy({width, frame.metrics.px(4)});
  if (widgets::button(frame, "tour/next", is_last ? "Done" : "Next", "Skips this step"))
    frame.commands.add(GoOnInTour{});
  ImGui::SameLine();
  if (widgets::button(frame, "tour/skip", "Skip the tour", "Help → Take the tour starts it again"))
    frame.commands.add(LeaveTour{});
}

}  // namespace

void draw_tour(const Frame& frame) {
  const auto& tour = frame.pending.selection.tour;
  if (!tour || frame.lesson || frame.displayed.selection.presenting.on) return;
  const TourStep& step = tour_steps()[tour->step];
  const bool is_last = tour->step + 1 == tour_steps().size();
  if (step.done(frame.pending.selection, frame.forms.dialog, frame.pending.model)) {
    // A number that is being dragged is not taken out of the hand.
    if (!ImGui::IsAnyItemActive()) frame.commands.add(GoOnInTour{});
    return;
  }
  if (frame.forms.dialog != Dialog::none) return;
  const auto place = frame.landmarks.find(step.place);
  const Landmarks::Rect rect = place.value_or(Landmarks::Rect{{0, 0}, {0, 0}});
  const float margin = frame.metrics.px(3);
  if (place)
    widgets::outline(ImGui::GetForegroundDrawList(), {rect.min.x - margin, rect.min.y - margin},
                     {rect.max.x + margin, rect.max.y + margin}, packed(frame.palette.accent), 2);
  const ImVec2 guess{frame.metrics.px(card_width + 24), frame.metrics.px(150)};
  ImGui::SetNextWindowPos(place_beside(frame, rect, guess), ImGuiCond_Always);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {frame.metrics.px(12), frame.metrics.px(10)});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, 1);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, frame.metrics.px(3));
  ImGui::PushStyleColor(ImGuiCol_WindowBg, vec(frame.palette.ground.raised));
  ImGui::PushStyleColor(ImGuiCol_Border, vec(frame.palette.accent));
  ImGui::Begin("tour", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_AlwaysAutoResize | ImGuiWindowFlags_NoMove |
                   ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoFocusOnAppearing |
                   ImGuiWindowFlags_NoNav);
  ImGui::PopStyleColor(2);
  ImGui::PopStyleVar(3);
  draw_card(frame, step, tour->step, is_last);
  const ImVec2 min = ImGui::GetWindowPos(), size = ImGui::GetWindowSize();
  frame.landmarks.mark("tour/card", min, {min.x + size.x, min.y + size.y});
  ImGui::End();
}

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

/// Whether all heads of a whole model are presented, and no stage.
bool presents_heads(const Frame& frame) {
  return frame.pending.whole && frame.displayed.look.tab == Tab::layers;
}

/// Which step of the lesson, else which stage of those that there are, from 1.
std::pair<std::size_t, std::size_t> index_of_count(const Frame& frame) {
  if (frame.lesson) return {frame.lesson->step + 1, frame.lesson->lesson->steps.size()};
  if (presents_heads(frame))
    return {frame.pending.whole->experiment.layer + 1,
            frame.pending.whole->model->description().sizes.n_layers};
  std::size_t index = 0, count = 0;
  for (const auto& stage : core::attention::stages())
    if (stage.present(frame.displayed.model)) {
      ++count;
      if (stage.stage == presented_stage(frame)) index = count;
    }
  return {index, count};
}

/// Where one is and what goes on: the lesson's step, else the flight, else the stage.
std::pair<std::string, std::string> where(const Frame& frame) {
  if (presents_heads(frame) && !frame.lesson)
    return {"layer " + std::to_string(frame.pending.whole->experiment.layer),
            "head " + std::to_string(frame.pending.look.head)};
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
  const auto& cell = frame.displayed.selection.hovered ? frame.displayed.selection.hovered
                                                       : frame.displayed.selection.pinned;
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
  return frame.displayed.selection.presenting.on ? frame.metrics.px(32) : 0;
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
  if (frame.displayed.selection.pinned && !frame.settings.reduce_motion)
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

namespace {

using core::attention::Columns;
using core::attention::StageInfo;

// At scale 1, which is half the height of the screen in thousandths.
constexpr float edge = 40, left_share = 0.31f, largest_cell_width = 60, largest_cell_height = 45,
                small_cell_width = 38, small_cell_height = 21, least_cell_width = 28, labels_room = 64,
                title_room = 26;

/// The cell that is presented: the one in flight, else the pinned one.
std::optional<CellRef> presented_cell(const Frame& frame) {
  const auto leg = leg_under_way(frame.displayed);
  return leg ? leg->to : frame.displayed.selection.pinned;
}

/// Of a title with its formula and head.
float title_width(const Frame& frame, Stage stage, ImFont* font) {
  const StageInfo& info = core::attention::info(stage);
  const float gap = frame.metrics.px(10);
  float width =
      widgets::text_width(font, info.title) + gap +
      widgets::formula_width(frame.fonts.sans12, computed_formula(info, frame.displayed.model, true));
  const std::string head = widgets::head_words(frame.displayed.model, stage, frame.displayed.look.head);
  if (frame.displayed.model.n_heads > 1 && !head.empty())
    width += gap + widgets::text_width(frame.fonts.sans12, head);
  return width;
}

/// The title of a map, whole with its formula and head.
void draw_title(const Frame& frame, Stage stage, ImFont* font, ImVec2 at, bool whole = true) {
  const StageInfo& info = core::attention::info(stage);
  const float width = widgets::text_width(font, info.title);
  widgets::draw_text(font, at, widgets::Align::left_top, packed(frame.palette.text), info.title);
  const float lowered =
      std::round(0.797f * (platform::font_size(font) - platform::font_size(frame.fonts.sans12)));
  const float end = at.x + width + frame.metrics.px(10);
  const float formula =
      !whole ? 0
             : widgets::draw_formula(frame.fonts.sans12, {end, at.y + lowered}, packed(frame.palette.dim),
                                     computed_formula(info, frame.displayed.model, true));
  const std::string head = widgets::head_words(frame.displayed.model, stage, frame.displayed.look.head);
  if (whole && frame.displayed.model.n_heads > 1 && !head.empty())
    widgets::draw_text(frame.fonts.sans12, {end + formula + frame.metrics.px(10), at.y + lowered},
                       widgets::Align::left_top, packed(frame.palette.faint), head);
  platform::move_to(at);
  widgets::hit_area((std::string("present/title/") + info.name).c_str(), {width, platform::font_size(font)});
  frame.landmarks.mark_item(std::string("present/title/") + info.name);
  draw_stage_menu(frame, "present", stage, frame.displayed.look.head);
}

/// A map at most as large as its room, with whole cells where they can be told apart.
widgets::Heatmap map_of(const Frame& frame, const char* place, Stage stage, ImVec2 room, ImVec2 largest) {
  const StageInfo& info = core::attention::info(stage);
  const auto& numbers = frame.displayed.trace.at(info.stage, frame.displayed.look.head);
  const auto cell = [](float length, std::size_t n, float most) {
    const float each = std::min(length / static_cast<float>(n), most);
    return each >= 2 ? std::floor(each) * static_cast<float>(n)
                     : std::min(length, most * static_cast<float>(n));
  };
  widgets::Heatmap map;
  map.place = std::string(place) + info.name;
  map.stage = stage;
  map.head = frame.displayed.look.head;
  map.width = static_cast<int>(std::max(1.0f, cell(room.x, numbers.n_cols(), largest.x)));
  map.height = static_cast<int>(std::max(1.0f, cell(room.y, numbers.n_rows(), largest.y)));
  map.whole = true;
  return map;
}

/// The stages that a cell is made of, each once.
std::vector<Stage> sources_of(const Frame& frame, const CellRef& cell) {
  std::vector<Stage> sources;
  for (const auto& cells : core::explain::operands(frame.displayed.model, frame.displayed.trace, cell))
    if (const Stage* stage = std::get_if<Stage>(&cells.source);
        stage && std::ranges::find(sources, *stage) == sources.end())
      sources.push_back(*stage);
  return sources;
}

/// How the cell is worked out from those beside it.
core::explain::Explanation last_steps(const Frame& frame, const CellRef& cell) {
  core::explain::Explanation all = core::explain::explain(frame.displayed.model, frame.displayed.trace, cell);
  std::erase_if(all.steps, [&](const core::explain::Step& step) { return !(step.cell == cell); });
  return all;
}

/// A cell worked out beneath what is said of it.
struct Worked {
  widgets::CellWords words;
  core::explain::Explanation steps;
};

/// At scale 1, with long sums folded.
float height_of(const Worked& worked) {
  constexpr float heading = 24, reason = 40;
  return heading + widgets::worked_cell_height(worked.steps) + (worked.words.reason.empty() ? 0 : reason);
}

/// Returns where it ends.
float draw_worked(const Frame& frame, const Worked& worked, ImVec2 at, float width) {
  const widgets::CellWords& words = worked.words;
  float x = at.x;
  const auto say = [&](const std::string& piece, Rgb color) {
    const std::string fitting =
        widgets::shortened(frame.fonts.sans13, piece, std::max(1.0f, at.x + width - x));
    widgets::draw_text(frame.fonts.sans13, {x, at.y}, widgets::Align::left_top, packed(color), fitting);
    x += widgets::text_width(frame.fonts.sans13, fitting);
  };
  say(words.subject, frame.palette.text);
  say(words.relation, frame.palette.dim);
  say(words.object, frame.palette.text);
  widgets::Pen pen{frame, at.x, at.x + width, at.y + frame.metrics.px(24)};
  widgets::draw_worked_cell(pen, worked.steps);
  if (!words.reason.empty()) pen.prose(words.reason, frame.palette.dim);
  return pen.y;
}

/// What the cell is made of, and how; from top to bottom.
void draw_left(const Frame& frame, const CellRef& cell, ImVec2 at, ImVec2 room) {
  const Metrics& m = frame.metrics;
  const std::vector<Stage> sources = sources_of(frame, cell);
  // Narrow maps stand beside each other, where their cells are as high as those of one map.
  const float across = (room.x - m.px(20)) / static_cast<float>(std::max<std::size_t>(1, sources.size()));
  const bool beside =
      sources.size() > 1 && std::ranges::all_of(sources, [&](Stage source) {
        const auto columns =
            static_cast<float>(frame.displayed.trace.at(source, frame.displayed.look.head).n_cols());
        return columns * m.px(least_cell_width) + m.px(16) <= across &&
               widgets::text_width(frame.fonts.sans13, core::attention::info(source).title) <= across;
      });
  float x = at.x, y = at.y, lowest = at.y;
  const Worked worked{widgets::cell_words(frame, cell), last_steps(frame, cell)};
  const float needed = m.px(height_of(worked));
  const float rows = beside ? 1 : static_cast<float>(std::max<std::size_t>(1, sources.size()));
  for (const Stage source : sources) {
    const float wanted = room.y * (rows > 1 ? 0.62f : 0.46f) / rows;
    const float left = (room.y - needed) / rows;
    const float share = std::max(std::min(wanted, left) - m.px(title_room + 34), m.px(30));
    if (wanted < m.px(title_room + 34 + 30)) break;
    const float wide = beside ? across - m.px(30) : room.x - m.px(20);
    widgets::Heatmap map = map_of(frame, "present/from/", source, {wide, share},
                                  {m.px(small_cell_width), m.px(small_cell_height)});
    map.row_tokens = false;
    map.columns = widgets::ColumnLabels::indices;
    map.label_width = m.px(16);
    map.show_bar = false;
    draw_title(frame, source, frame.fonts.sans13, {x, y}, !beside);
    const float labels = y + m.px(20);
    const float end = labels + widgets::column_label_height(frame, map) + static_cast<float>(map.height);
    widgets::draw_heatmap(frame, map, {x, labels});
    lowest = std::max(lowest, end + m.px(14));
    if (beside)
      x += across;
    else
      y = lowest;
  }
  y = lowest;
  // What is unfolded may be longer than the screen is high.
  platform::move_to({at.x - m.px(4), y});
  const float scrollbar = ImGui::GetStyle().ScrollbarSize;
  ImGui::BeginChild("worked", {room.x + m.px(8) + scrollbar, std::max(1.0f, at.y + room.y - y)}, false,
                    ImGuiWindowFlags_NoBackground);
  const ImVec2 begin = ImGui::GetCursorScreenPos();
  const float end = draw_worked(frame, worked, {begin.x + m.px(4), begin.y}, room.x);
  platform::move_to(begin);
  ImGui::Dummy({1, end - begin.y});
  ImGui::EndChild();
}

}  // namespace

Stage presented_stage(const Frame& frame) {
  const auto present = [&](Stage stage) {
    return core::attention::info(stage).present(frame.displayed.model);
  };
  if (const auto cell = presented_cell(frame); cell && present(cell->stage)) return cell->stage;
  if (frame.lesson)
    for (const std::string_view name : frame.lesson->shown().focus)
      if (name.starts_with("strip/"))
        if (const auto* stage = core::attention::find_stage(name.substr(6)); stage && present(stage->stage))
          return stage->stage;
  if (frame.displayed.look.tab == Tab::heads && present(frame.displayed.look.heads_stage))
    return frame.displayed.look.heads_stage;
  if (frame.displayed.look.large && present(*frame.displayed.look.large)) return *frame.displayed.look.large;
  if (present(Stage::weights)) return Stage::weights;
  for (const StageInfo& stage : core::attention::stages())
    if (stage.present(frame.displayed.model)) return stage.stage;
  return Stage::weights;
}

void draw_presented_stage(const Frame& frame) {
  const Metrics& m = frame.metrics;
  const ImVec2 origin = ImGui::GetWindowPos(), size = ImGui::GetWindowSize();
  const Stage stage = presented_stage(frame);
  const auto cell = presented_cell(frame);
  const StageInfo& info = core::attention::info(stage);
  const float left = cell ? size.x * left_share + m.px(edge) : m.px(edge) / 2;
  const float top = origin.y + m.px(34);
  if (cell)
    draw_left(frame, *cell, {origin.x + m.px(edge), top + m.px(24)},
              {size.x * left_share - m.px(edge) / 2, size.y - m.px(34 + 24 + 8)});
  const float labels = m.px(labels_room);
  const ImVec2 room{size.x - left - labels - m.px(edge), size.y - m.px(34 + title_room + 36 + 40)};
  widgets::Heatmap map =
      map_of(frame, "present/", stage, room, {m.px(largest_cell_width), m.px(largest_cell_height)});
  map.label_width = labels;
  map.show_bar = info.columns != Columns::single;
  const float used =
      labels + std::max(static_cast<float>(map.width), title_width(frame, stage, frame.fonts.sans17));
  const float x = origin.x + left + std::max(0.0f, (size.x - left - m.px(edge) - used) * 0.5f);
  draw_title(frame, stage, frame.fonts.sans17, {std::round(x + labels), top});
  widgets::draw_heatmap(frame, map, {std::round(x), top + m.px(title_room)});
}

}  // namespace app::panels
