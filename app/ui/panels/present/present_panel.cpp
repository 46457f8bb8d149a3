#include "app/ui/panels/present/present_panel.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "app/session/navigation.hpp"
#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/menus/stage_menu.hpp"
#include "app/ui/widgets/cell_words.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/heatmap/heatmap_view.hpp"
#include "app/ui/widgets/hit_area.hpp"
#include "app/ui/widgets/pen.hpp"
#include "app/ui/widgets/worked_cell.hpp"
#include "core/graph/explain.hpp"

namespace app::panels {
namespace {

using core::attention::Columns;
using core::attention::StageInfo;

// At scale 1, which is half the height of the screen in thousandths.
constexpr float edge = 40, left_share = 0.31f, largest_cell_width = 60, largest_cell_height = 45,
                small_cell_width = 38, small_cell_height = 21, least_cell_width = 28, labels_room = 64,
                title_room = 26;

/// The cell that is presented: the one in flight, else the pinned one.
std::optional<CellRef> presented_cell(const Frame& frame) {
  const auto leg = leg_under_way(frame.shown);
  return leg ? leg->to : frame.shown.selection.pinned;
}

/// Of a title with its formula and head.
float title_width(const Frame& frame, Stage stage, ImFont* font) {
  const StageInfo& info = core::attention::info(stage);
  const float gap = frame.metrics.px(10);
  float width = widgets::text_width(font, info.title) + gap +
                widgets::formula_width(frame.fonts.sans12, computed_formula(info, frame.shown.model, true));
  const std::string head = widgets::head_words(frame.shown.model, stage, frame.shown.look.head);
  if (frame.shown.model.n_heads > 1 && !head.empty())
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
                                     computed_formula(info, frame.shown.model, true));
  const std::string head = widgets::head_words(frame.shown.model, stage, frame.shown.look.head);
  if (whole && frame.shown.model.n_heads > 1 && !head.empty())
    widgets::draw_text(frame.fonts.sans12, {end + formula + frame.metrics.px(10), at.y + lowered},
                       widgets::Align::left_top, packed(frame.palette.faint), head);
  platform::move_to(at);
  widgets::hit_area((std::string("present/title/") + info.name).c_str(), {width, platform::font_size(font)});
  frame.landmarks.mark_item(std::string("present/title/") + info.name);
  draw_stage_menu(frame, "present", stage, frame.shown.look.head);
}

/// A map at most as large as its room, with whole cells where they can be told apart.
widgets::Heatmap map_of(const Frame& frame, const char* place, Stage stage, ImVec2 room, ImVec2 largest) {
  const StageInfo& info = core::attention::info(stage);
  const auto& numbers = info.matrix(frame.shown.trace, frame.shown.look.head);
  const auto cell = [](float length, std::size_t n, float most) {
    const float each = std::min(length / static_cast<float>(n), most);
    return each >= 2 ? std::floor(each) * static_cast<float>(n)
                     : std::min(length, most * static_cast<float>(n));
  };
  widgets::Heatmap map;
  map.place = std::string(place) + info.name;
  map.stage = stage;
  map.head = frame.shown.look.head;
  map.width = static_cast<int>(std::max(1.0f, cell(room.x, numbers.n_cols(), largest.x)));
  map.height = static_cast<int>(std::max(1.0f, cell(room.y, numbers.n_rows(), largest.y)));
  map.whole = true;
  return map;
}

/// The stages that a cell is made of, each once.
std::vector<Stage> sources_of(const Frame& frame, const CellRef& cell) {
  std::vector<Stage> sources;
  for (const auto& cells : core::explain::operands(frame.shown.model, frame.shown.trace, cell))
    if (const Stage* stage = std::get_if<Stage>(&cells.source);
        stage && std::ranges::find(sources, *stage) == sources.end())
      sources.push_back(*stage);
  return sources;
}

/// How the cell is worked out from those beside it.
core::explain::Explanation last_steps(const Frame& frame, const CellRef& cell) {
  core::explain::Explanation all = core::explain::explain(frame.shown.model, frame.shown.trace, cell);
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
        const auto columns = static_cast<float>(
            core::attention::info(source).matrix(frame.shown.trace, frame.shown.look.head).n_cols());
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
  const auto present = [&](Stage stage) { return core::attention::info(stage).present(frame.shown.model); };
  if (const auto cell = presented_cell(frame); cell && present(cell->stage)) return cell->stage;
  if (frame.lesson)
    for (const std::string_view name : frame.lesson->shown().focus)
      if (name.starts_with("strip/"))
        if (const auto* stage = core::attention::find_stage(name.substr(6)); stage && present(stage->stage))
          return stage->stage;
  if (frame.shown.look.tab == Tab::heads && present(frame.shown.look.heads_stage))
    return frame.shown.look.heads_stage;
  if (frame.shown.look.large && present(*frame.shown.look.large)) return *frame.shown.look.large;
  if (present(Stage::weights)) return Stage::weights;
  for (const StageInfo& stage : core::attention::stages())
    if (stage.present(frame.shown.model)) return stage.stage;
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
