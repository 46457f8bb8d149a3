#include "app/ui/panels/stages/stages_panel.hpp"

#include <algorithm>
#include <array>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/menus/action_menu.hpp"
#include "app/ui/panels/stages/large_panel.hpp"
#include "app/ui/panels/stages/stage_handling.hpp"
#include "app/ui/panels/stages/strip_layout.hpp"
#include "app/ui/panels/stages/turning_panel.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/pen.hpp"
#include "core/base/text.hpp"
#include "core/graph/line_words.hpp"

namespace app::panels {
namespace {

using core::attention::StageInfo;

constexpr float folded_height = 20;  // of the line of folded stages, at scale 1

std::string heading(const Frame& frame, int line) {
  return core::explain::line_words(frame.shown.model, frame.shown.trace, frame.shown.look.head, line);
}

void draw_heading(const Frame& frame, const StripRow& row, ImVec2 origin) {
  if (frame.metrics.compact || !row.first) return;
  const float y = origin.y + row.heading;
  widgets::draw_text(frame.fonts.mono12, {origin.x, y}, widgets::Align::left_middle,
                     packed(frame.palette.faint), std::to_string(row.line));
  const std::string words = heading(frame, row.line);
  const ImVec2 at{origin.x + frame.metrics.px(18), y};
  widgets::draw_text(frame.fonts.sans14, at, widgets::Align::left_middle, packed(frame.palette.dim), words);
  frame.landmarks.mark("strip/heading/" + std::to_string(row.line), {at.x, at.y - frame.metrics.px(8)},
                       {at.x + widgets::text_width(frame.fonts.sans14, words), at.y + frame.metrics.px(8)});
}

/// The line that leads from the end of one row back to the beginning of the next.
void draw_return(const Frame& frame, const StripRow& from, const StripRow& to, ImVec2 origin, float width) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float right = origin.x + width - 1, y = origin.y + to.heading;
  const float top = origin.y + from.bottom - frame.metrics.px(3);
  const float words =
      frame.metrics.compact || !to.first
          ? 0
          : widgets::text_width(frame.fonts.sans14, heading(frame, to.line)) + frame.metrics.px(32);
  const ImU32 color = packed(frame.palette.strong_line);
  list->AddRectFilled({right - 1, top}, {right, y}, color);
  widgets::draw_arrow(list, {right, y}, {origin.x + words, y}, color, frame.metrics.px(6));
}

/// A link behind the title of the dropout mask, where there is room.
void draw_way_to_laboratory(const Frame& frame, ImVec2 at, float end) {
  const char* words = laboratory_link;
  if (at.x + widgets::text_width(frame.fonts.sans13, words) > end) return;
  if (widgets::link(frame, "strip/laboratory", frame.fonts.sans13, at, widgets::Align::left_middle,
                    frame.palette.accent, words))
    perform("tab/laboratory", situation_of(frame), frame.commands);
  if (ImGui::IsItemHovered()) ImGui::SetTooltip("Many masks, their mean, and how fast it settles");
}

/// A link behind the titles of what turned, where there is room.
void draw_way_to_positions(const Frame& frame, Stage stage, ImVec2 at, float end) {
  const char* words = turning_link;
  if (at.x + widgets::text_width(frame.fonts.sans13, words) > end) return;
  if (widgets::link(frame, std::string("strip/positions/") + core::attention::info(stage).name,
                    frame.fonts.sans13, at, widgets::Align::left_middle, frame.palette.accent, words))
    frame.commands.look([stage](View& v) { v.look.large = stage; });
  if (ImGui::IsItemHovered()) ImGui::SetTooltip("The pairs of a query and a key, their angles and the score");
}

void draw_title(const Frame& frame, const StripMap& s, ImVec2 origin) {
  const StageInfo& stage = core::attention::info(s.map.stage);
  const core::attention::StageMatrix& numbers = stage.matrix(frame.shown.trace, s.map.head);
  const auto& f = frame.fonts;
  ImFont* title = frame.metrics.compact ? f.sans16 : f.sans17;
  ImFont* formula = frame.metrics.compact ? f.sans13 : f.sans14;
  const auto lowered = [&](ImFont* small) { return widgets::baseline_drop(title, small); };
  ImVec2 at{origin.x + s.title.x, origin.y + s.title.y};
  draw_stage_title(frame, std::string("strip/title/") + stage.name, s.map.stage, title, at);
  at.x += widgets::text_width(title, stage.title) + frame.metrics.px(10);
  const std::string words = formula_of(stage, frame.shown.model, frame.metrics.compact);
  if (!words.empty())
    at.x +=
        widgets::draw_formula(formula, {at.x, at.y + lowered(formula)}, packed(frame.palette.dim), words) +
        frame.metrics.px(10);
  const std::string shape = core::text::shape_text(numbers.n_rows(), numbers.n_cols());
  widgets::draw_text(f.mono12, {at.x, at.y + lowered(f.mono12)}, widgets::Align::left_top,
                     packed(frame.palette.faint), shape);
  at.x += widgets::text_width(f.mono12, shape) + frame.metrics.px(10);
  if (const std::string group = group_words(frame, s.map.stage); !group.empty()) {
    const float top = at.y + lowered(f.sans13), width = widgets::text_width(f.sans13, group);
    widgets::draw_text(f.sans13, {at.x, top}, widgets::Align::left_top, packed(frame.palette.dim), group);
    frame.landmarks.mark(std::string("strip/group/") + stage.name, {at.x, top},
                         {at.x + width, top + platform::font_size(f.sans13)});
    at.x += width + frame.metrics.px(10);
  }
  if (has_turning(frame, s.map.stage))
    draw_way_to_positions(frame, s.map.stage, {at.x, at.y + platform::font_size(title) / 2},
                          origin.x + s.title.x + s.width);
  if (s.map.stage == Stage::dropout_mask)
    draw_way_to_laboratory(frame, {at.x, at.y + platform::font_size(title) / 2},
                           origin.x + s.title.x + s.width);
}

/// Thin arrows between neighbours, where there is room and one leads to the other.
void draw_arrow_between(const Frame& frame, const StripMap& a, const StripMap& b, ImVec2 origin) {
  const bool siblings = (core::attention::info(b.map.stage).line == 1 && b.map.stage != Stage::queries) ||
                        a.map.stage == Stage::key_embeddings || b.map.stage == Stage::position_bias;
  const float from = origin.x + a.title.x + a.map.label_width + static_cast<float>(a.map.width) +
                     (a.map.bar_beside ? widgets::bar_room(frame, a.map) : 0) +
                     a.map.gutter_width * static_cast<float>(widgets::gutter_count(a.map.stage)) +
                     frame.metrics.px(4);
  const float to = origin.x + b.title.x - frame.metrics.px(frame.metrics.compact ? 0 : 3);
  if (siblings || to - from < frame.metrics.px(10)) return;
  const float y = origin.y + a.labels.y + widgets::column_label_height(frame, a.map) +
                  static_cast<float>(a.map.height) / 2;
  widgets::draw_arrow(ImGui::GetWindowDrawList(), {from, y}, {std::min(to, from + frame.metrics.px(90)), y},
                      packed(frame.palette.faint), frame.metrics.px(6));
}

bool is_folded(const Frame& frame, const StageInfo& stage) {
  return stage.present(frame.shown.model) && frame.shown.look.folded.contains(stage.stage);
}

/// Whether any stage was folded away; small windows keep silent about those that are from the beginning.
bool has_folded(const Frame& frame) {
  const auto counts = [&](const StageInfo& stage) {
    const bool from_the_beginning = stage.stage == Stage::mask || stage.stage == Stage::row_sums;
    return is_folded(frame, stage) && !(frame.metrics.compact && from_the_beginning);
  };
  return std::ranges::any_of(core::attention::stages(), counts);
}

/// The stages that were folded away, each a link that brings it back; returns where the line ends.
float draw_folded(const Frame& frame, ImVec2 origin, float width, float y) {
  if (!has_folded(frame)) return y;
  const float middle = origin.y + y + frame.metrics.px(folded_height) / 2;
  float x = origin.x;
  ImFont* font = frame.fonts.sans13;
  for (const StageInfo& stage : core::attention::stages()) {
    if (!is_folded(frame, stage)) continue;
    if (x == origin.x) {
      widgets::draw_text(font, {x, middle}, widgets::Align::left_middle, packed(frame.palette.faint),
                         "folded away:");
      x += widgets::text_width(font, "folded away:") + frame.metrics.px(10);
    }
    if (x + widgets::text_width(font, stage.title) > origin.x + width) break;  // the View menu has them all
    if (widgets::link(frame, std::string("strip/unfold/") + stage.name, font, {x, middle},
                      widgets::Align::left_middle, frame.palette.accent, stage.title))
      frame.commands.look([s = stage.stage](View& v) { v.look.folded.erase(s); });
    if (ImGui::IsItemHovered()) ImGui::SetTooltip("Shows this stage in the strip again");
    x += widgets::text_width(font, stage.title) + frame.metrics.px(14);
  }
  return y + frame.metrics.px(folded_height);
}

/// The stage with its title, labels and bar, whose low end may stick out at the left, for lessons.
void mark_block(const Frame& frame, const StripMap& s, ImVec2 origin) {
  const bool below = s.map.show_bar && !s.map.bar_beside;
  const float low_end = below ? widgets::text_width(frame.fonts.mono12, "−00.00") + frame.metrics.px(5) : 0;
  const float left = origin.x + s.title.x, top = origin.y + s.title.y;
  const float bottom = origin.y + s.labels.y + widgets::column_label_height(frame, s.map) +
                       static_cast<float>(s.map.height) +
                       (below ? widgets::bar_room(frame, s.map) : frame.metrics.px(6));
  frame.landmarks.mark(std::string("block/") + core::attention::info(s.map.stage).name,
                       {left - std::max(0.0f, low_end - s.map.label_width), top}, {left + s.width, bottom});
}

/// A model that was just opened is seen from its beginning.
void begin_at_top(const Frame& frame) {
  const ImGuiID here = ImGui::GetID("document");
  const int document =
      static_cast<int>(ImGui::GetID((frame.document.title + "/" + frame.document.preset).c_str()));
  if (ImGui::GetStateStorage()->GetInt(here, document) != document) {
    ImGui::SetScrollX(0);
    ImGui::SetScrollY(0);
  }
  ImGui::GetStateStorage()->SetInt(here, document);
}

}  // namespace

void draw_stages(const Frame& frame) {
  begin_at_top(frame);
  if (frame.shown.look.large && core::attention::info(*frame.shown.look.large).present(frame.shown.model))
    return draw_large(frame);
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  // What fits must not depend on whether there is a scrollbar.
  const float padding = origin.x - ImGui::GetWindowPos().x + ImGui::GetScrollX();
  const float width = std::floor(ImGui::GetWindowWidth() - 2 * padding - ImGui::GetStyle().ScrollbarSize);
  const float below = has_folded(frame) ? frame.metrics.px(folded_height) : 0;
  const std::vector<StripRow> rows = lay_out_strip(frame, width, room.y - below);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    draw_heading(frame, rows[r], origin);
    if (r > 0) draw_return(frame, rows[r - 1], rows[r], origin, width);
    for (std::size_t k = 0; k < rows[r].maps.size(); ++k) {
      const StripMap& s = rows[r].maps[k];
      draw_title(frame, s, origin);
      if (k > 0) draw_arrow_between(frame, rows[r].maps[k - 1], s, origin);
      widgets::draw_heatmap(frame, s.map, {origin.x + s.labels.x, origin.y + s.labels.y});
      handle_stage(frame, s.map.stage);
      mark_block(frame, s, origin);
    }
  }
  const float bottom = draw_folded(frame, origin, width, rows.empty() ? 0 : rows.back().bottom);
  platform::move_to(origin);
  float widest = 1;
  for (const StripRow& row : rows) widest = std::max(widest, row.maps.back().title.x + row.maps.back().width);
  if (widest > width) frame.landmarks.mark("strip/wider", origin, {origin.x + widest, origin.y + bottom});
  ImGui::Dummy({widest > width ? widest : 1, std::max(1.0f, bottom)});
}

}  // namespace app::panels
