#include "app/ui/panels/bars/view_bar.hpp"

#include <algorithm>
#include <array>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/bars/view_controls.hpp"
#include "app/ui/widgets/buttons.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/hit_area.hpp"

namespace app::panels {
namespace {

struct TabRow {
  Tab tab;
  const char* title;
  const char* about;
};
constexpr std::array tabs{
    TabRow{Tab::layers, "Layers", "Every head of every layer, and which token comes next"},
    TabRow{Tab::stages, "Stages", "Every stage of one head, from embeddings to output"},
    TabRow{Tab::heads, "Heads", "One stage of all heads, side by side"},
    TabRow{Tab::tokens, "Tokens", "Who listens to whom: lines from queries to keys"},
    TabRow{Tab::compare, "Compare", "A state that was kept against the live one, stage by stage"}};

/// All tabs as one field, where there is no room for them side by side.
float draw_tabs_as_field(const Frame& frame, float width) {
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  const auto now = std::ranges::find(tabs, frame.shown.look.tab, &TabRow::tab);
  platform::move_to({origin.x, origin.y + (frame.metrics.tabs - frame.metrics.frame) / 2});
  ImGui::SetNextItemWidth(std::min(width, frame.metrics.px(130)));
  platform::push_font(frame.fonts.sans15);
  if (widgets::begin_combo(frame, "##tabs", now == tabs.end() ? "Laboratory" : now->title)) {
    for (const TabRow& row : tabs) {
      if (row.tab == Tab::layers && !frame.newest.whole) continue;
      if (ImGui::Selectable(row.title, row.tab == frame.shown.look.tab))
        frame.commands.look([tab = row.tab](View& v) { v.look.tab = tab; });
      frame.landmarks.mark_item(std::string("tabs/") + row.title);
      bar_tooltip(frame, row.about);
    }
    ImGui::EndCombo();
  }
  ImGui::PopFont();
  frame.landmarks.mark_item("tabs");
  return ImGui::GetItemRectMax().x + frame.metrics.px(12);
}

/// Returns where the last tab ends.
float draw_tabs(const Frame& frame, float room) {
  ImFont* font = frame.fonts.sans16;
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  const float height = frame.metrics.tabs;
  const auto is_there = [&](const TabRow& row) { return row.tab != Tab::layers || frame.newest.whole; };
  float all = 0;
  for (const TabRow& row : tabs)
    if (is_there(row)) all += widgets::text_width(font, row.title) + frame.metrics.px(24);
  if (all > room) return draw_tabs_as_field(frame, room);
  float x = origin.x;
  for (const TabRow& row : tabs) {
    if (!is_there(row)) continue;
    const float width = widgets::text_width(font, row.title);
    platform::move_to({x, origin.y});
    widgets::hit_area(row.title, {width, height});
    frame.landmarks.mark_item(std::string("tabs/") + row.title);
    bar_tooltip(frame, row.about);
    if (ImGui::IsItemActivated()) frame.commands.look([tab = row.tab](View& v) { v.look.tab = tab; });
    if (ImGui::IsItemFocused() && ImGui::GetIO().NavVisible)
      widgets::outline(ImGui::GetWindowDrawList(), {x - frame.metrics.px(6), origin.y + frame.metrics.px(5)},
                       {x + width + frame.metrics.px(6), origin.y + height - frame.metrics.px(5)},
                       packed(frame.palette.accent), 2);
    const bool chosen = frame.shown.look.tab == row.tab;
    const bool lit = chosen || ImGui::IsItemHovered() || ImGui::IsItemFocused();
    widgets::draw_text(font, {x, origin.y + height / 2}, widgets::Align::left_middle,
                       packed(lit ? frame.palette.text : frame.palette.dim), row.title);
    if (chosen)
      ImGui::GetWindowDrawList()->AddRectFilled({x, origin.y + height - frame.metrics.px(2)},
                                                {x + width, origin.y + height}, packed(frame.palette.accent));
    x += width + frame.metrics.px(24);
  }
  return x;
}

}  // namespace

void draw_view_bar(const Frame& frame) {
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  const float top = origin.y + (frame.metrics.tabs - frame.metrics.frame) / 2;
  const float right = origin.x + width - ImGui::GetStyle().ScrollbarSize;
  const float menu = frame.metrics.px(70);
  const float end = draw_tabs(frame, right - menu - origin.x);
  draw_view_controls(frame, right, top, right - end);
}

}  // namespace app::panels
