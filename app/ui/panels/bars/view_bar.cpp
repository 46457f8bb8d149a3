#include "app/ui/panels/bars/view_bar.hpp"

#include <algorithm>
#include <array>

#include "app/ui/panels/stages/colours_popup.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/hit_area.hpp"
#include "app/ui/widgets/number_text.hpp"

namespace app::panels {
namespace {

using core::attention::StageInfo;

constexpr std::size_t most_head_buttons = 8;

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

void tooltip(const Frame& frame, const char* text) {
  if (!ImGui::IsItemHovered()) return;
  ImGui::PushFont(frame.fonts.sans14);
  ImGui::SetTooltip("%s", text);
  ImGui::PopFont();
}

/// Returns where the last tab ends.
float draw_tabs(const Frame& frame) {
  ImFont* font = frame.fonts.sans16;
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  const float height = frame.metrics.tabs;
  float x = origin.x;
  for (const TabRow& row : tabs) {
    if (row.tab == Tab::layers && !frame.newest.whole) continue;
    const float width = widgets::text_width(font, row.title);
    ImGui::SetCursorScreenPos({x, origin.y});
    widgets::hit_area(row.title, {width, height});
    frame.landmarks.mark_item(std::string("tabs/") + row.title);
    tooltip(frame, row.about);
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

float label(const Frame& frame, float right, float middle, const char* text) {
  widgets::draw_text(frame.fonts.sans15, {right, middle}, widgets::Align::right_middle,
                     packed(frame.palette.dim), text);
  return right - widgets::text_width(frame.fonts.sans15, text) - frame.metrics.px(20);
}

/// The heads as buttons, or as a field with arrows when they are many; returns where it begins.
float draw_head_chooser(const Frame& frame, float right, float top) {
  const std::size_t n = frame.shown.model.n_heads;
  const float width = frame.metrics.px(32), height = frame.metrics.frame;
  ImGui::PushFont(frame.fonts.mono14);
  float left = right;
  if (n <= (frame.metrics.compact ? most_head_buttons / 2 : most_head_buttons)) {
    left = right - width * static_cast<float>(n);
    for (std::size_t h = 0; h < n; ++h) {
      ImGui::SetCursorScreenPos({left + width * static_cast<float>(h), top});
      ImGui::PushStyleColor(ImGuiCol_Button, vec(h == frame.shown.look.head ? frame.palette.control.active
                                                                            : frame.palette.control.rest));
      if (ImGui::Button(std::to_string(h).c_str(), {width, height}))
        frame.commands.look([h](View& v) { v.look.head = h; });
      ImGui::PopStyleColor();
      frame.landmarks.mark_item("view/head/" + std::to_string(h));
      tooltip(frame, "The head whose stages are shown (1 … 9, [ and ])");
    }
  } else {
    left = right - frame.metrics.px(96);
    ImGui::SetCursorScreenPos({left, top});
    ImGui::SetNextItemWidth(frame.metrics.px(96));
    const std::string shown = std::to_string(frame.shown.look.head);
    if (ImGui::BeginCombo("##head", shown.c_str())) {
      for (std::size_t h = 0; h < n; ++h)
        if (ImGui::Selectable(std::to_string(h).c_str(), h == frame.shown.look.head))
          frame.commands.look([h](View& v) { v.look.head = h; });
      ImGui::EndCombo();
    }
    frame.landmarks.mark_item("view/head");
    tooltip(frame, "The head whose stages are shown ([ and ] go to the one before, after)");
  }
  ImGui::PopFont();
  frame.landmarks.mark("view/heads", {left, top}, {right, top + height});
  return left - frame.metrics.px(10);
}

/// The button that says how numbers become colours and opens the choice.
float draw_colours(const Frame& frame, float right, float top) {
  const float width =
      frame.metrics.px(frame.metrics.compact && frame.shown.look.tab == Tab::heads ? 100 : 150);
  const std::string words = colours_words(frame.shown.look.colours);
  const float room = width - frame.metrics.px(12);
  const bool fits = widgets::text_width(frame.fonts.sans14, words) <= room;
  const std::string shown = fits ? words : words.substr(words.find(' ') + 1);  // "by matrix"
  ImGui::SetCursorScreenPos({right - width, top});
  ImGui::PushFont(frame.fonts.sans14);
  const bool pressed =
      ImGui::Button((widgets::shortened(frame.fonts.sans14, shown, room) + "###colours").c_str(),
                    {width, frame.metrics.frame});
  ImGui::PopFont();
  frame.landmarks.mark_item("view/range");
  tooltip(frame,
          (words + ": what sets the ends of the colours, which colours, linear or logarithmic").c_str());
  if (pressed) ImGui::OpenPopup("colours");
  draw_colours_popup(frame, "colours", {right, top + frame.metrics.frame + frame.metrics.px(4)});
  return right - width - frame.metrics.px(24);
}

/// What the heads are sorted by.
float draw_order_chooser(const Frame& frame, float right, float top) {
  const float width = frame.metrics.px(frame.metrics.compact ? 120 : 150);
  const auto& order = frame.shown.look.heads_order;
  const std::string shown = order ? core::attention::info(*order).title : "number";
  ImGui::SetCursorScreenPos({right - width, top});
  ImGui::SetNextItemWidth(width);
  ImGui::PushFont(frame.fonts.sans14);
  if (ImGui::BeginCombo(
          "##order", widgets::shortened(frame.fonts.sans14, shown, width - frame.metrics.px(36)).c_str())) {
    if (ImGui::Selectable("number", !order)) frame.commands.look([](View& v) { v.look.heads_order.reset(); });
    frame.landmarks.mark_item("view/order/number");
    for (const auto& figure : core::attention::head_figures()) {
      if (ImGui::Selectable(figure.title, order == figure.figure))
        frame.commands.look([f = figure.figure](View& v) { v.look.heads_order = f; });
      frame.landmarks.mark_item(std::string("view/order/") + figure.name);
    }
    ImGui::EndCombo();
  }
  ImGui::PopFont();
  frame.landmarks.mark_item("view/order");
  tooltip(
      frame,
      "What the heads are sorted by: their number, how spread their weights are on average, or the mean weight on those tokens");
  return right - width - frame.metrics.px(10);
}

/// Which weights are too small for a line; finer near 0.
float draw_threshold(const Frame& frame, float right, float top) {
  const float width = frame.metrics.px(150);
  double below = frame.shown.look.tokens.hide_below;
  constexpr double low = 0, high = 1;
  ImGui::SetCursorScreenPos({right - width, top});
  ImGui::SetNextItemWidth(width);
  ImGui::PushFont(frame.fonts.mono14);
  const bool moved = ImGui::SliderScalar("##hide below", ImGuiDataType_Double, &below, &low, &high, "",
                                         ImGuiSliderFlags_AlwaysClamp | ImGuiSliderFlags_Logarithmic);
  ImGui::PopFont();
  frame.landmarks.mark_item("view/hide_below");
  tooltip(frame, "Weights below this have no line. Ctrl+click to type.");
  if (!(ImGui::IsItemActive() &&
        ImGui::GetIO().WantTextInput))  // at the right, clear of the grab, as in every field
    widgets::draw_text(frame.fonts.mono14, {right - frame.metrics.px(8), top + frame.metrics.frame / 2},
                       widgets::Align::right_middle, packed(frame.palette.text), widgets::fixed(below, 3));
  if (moved) frame.commands.look([below](View& v) { v.look.tokens.hide_below = below; });
  return right - width - frame.metrics.px(10);
}

float draw_stage_chooser(const Frame& frame, float right, float top) {
  const float width = frame.metrics.px(frame.metrics.compact ? 120 : 150);
  ImGui::SetCursorScreenPos({right - width, top});
  ImGui::SetNextItemWidth(width);
  ImGui::PushFont(frame.fonts.sans14);
  if (ImGui::BeginCombo("##stage", core::attention::info(frame.shown.look.heads_stage).title,
                        ImGuiComboFlags_HeightLarge)) {
    for (const StageInfo& stage : core::attention::stages()) {
      if (!stage.present(frame.shown.model) || !stage.per_head) continue;
      if (ImGui::Selectable(stage.title, stage.stage == frame.shown.look.heads_stage))
        frame.commands.look([s = stage.stage](View& v) { v.look.heads_stage = s; });
    }
    ImGui::EndCombo();
  }
  ImGui::PopFont();
  frame.landmarks.mark_item("view/stage");
  tooltip(frame, "The stage that is shown of every head");
  return right - width - frame.metrics.px(10);
}

}  // namespace

void draw_view_bar(const Frame& frame) {
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  const float top = origin.y + (frame.metrics.tabs - frame.metrics.frame) / 2,
              middle = origin.y + frame.metrics.tabs / 2;
  const float tabs_end = draw_tabs(frame);
  float right = origin.x + width - ImGui::GetStyle().ScrollbarSize;
  if (frame.shown.look.tab == Tab::tokens) {
    right = draw_threshold(frame, right, top);
    label(frame, right, middle, "hide below");
  } else if (frame.shown.look.tab == Tab::heads) {
    const bool roomy = right - tabs_end > frame.metrics.px(520);  // else the tooltips say what the fields are
    right = draw_stage_chooser(frame, right, top);
    if (roomy) right = label(frame, right, middle, "stage");
    right = draw_order_chooser(frame, right, top);
    if (roomy) right = label(frame, right, middle, "sort");
    draw_colours(frame, right, top);
  } else if (frame.shown.look.tab == Tab::layers) {
    draw_colours(frame, right, top);
  } else {
    right = draw_head_chooser(frame, right, top);
    right = label(frame, right, middle, "head");
    if (frame.shown.look.tab != Tab::compare) right = draw_colours(frame, right, top);
    if (frame.newest.whole && right - tabs_end > frame.metrics.px(60))
      label(frame, right, middle, ("layer " + std::to_string(frame.newest.whole->layer)).c_str());
  }
}

}  // namespace app::panels
