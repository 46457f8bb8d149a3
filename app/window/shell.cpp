#include "app/window/shell.hpp"

#include <algorithm>
#include <array>

#include "app/session/navigation.hpp"
#include "app/theme/imgui_compat.hpp"
#include "app/ui/panels/bars/bars.hpp"
#include "app/ui/panels/compare/compare_panel.hpp"
#include "app/ui/panels/dialogs/dialogs.hpp"
#include "app/ui/panels/edit/edit_panel.hpp"
#include "app/ui/panels/gradient/gradient_panel.hpp"
#include "app/ui/panels/heads/heads_panel.hpp"
#include "app/ui/panels/inspector/inspector_panel.hpp"
#include "app/ui/panels/laboratory/laboratory_panel.hpp"
#include "app/ui/panels/layers/layers_panel.hpp"
#include "app/ui/panels/learning/learning_panel.hpp"
#include "app/ui/panels/lessons/lesson_panel.hpp"
#include "app/ui/panels/model/model_panel.hpp"
#include "app/ui/panels/present/present_panel.hpp"
#include "app/ui/panels/stages/stages_panel.hpp"
#include "app/ui/panels/start/start_page.hpp"
#include "app/ui/panels/tokens/tokens_panel.hpp"
#include "app/ui/widgets/drawing.hpp"

namespace app {
namespace {

constexpr float presented_maps_share = 0.68f;  // share of the window; the prediction has the rest

/// Layout of the window's regions, in pixels.
struct Regions {
  ImVec2 size;
  float left, right;              // widths of the side regions
  float grip;                     // half the width of a splitter's grab area; panels leave it free
  float top, bottom;              // end of the menu and start of the status bar
  float model_height;             // of MODEL above EDIT
  float banner;                   // height of the banners about file and gradient, above the view
  float lesson_pictures, lesson;  // heights of a lesson's pictures above the view and of its text below
  float animation_bar;            // height of the buttons of an animation or of decoding, below the view
  float next_token;               // height of the next-token strip, above the inspector
};

struct PanelRow {
  const char* name;
  void (*draw)(const Frame&);
  bool padded, scrolls;
  /// Returns the panel's rectangle: left, top, right and bottom in pixels.
  ImVec4 (*place)(const Frame&, const Regions&);
  bool (*shown)(const Frame&);
};

bool presents(const Frame& f) {
  return f.displayed.selection.presentation.on;
}
/// Returns whether panels surround the view: not in a presentation, nor on the start page.
bool has_side_panels(const Frame& f) {
  return !presents(f) && !panels::shows_start_page(f);
}
bool shows_layers(const Frame& frame) {
  return frame.displayed.look.tab == Tab::layers && has_side_panels(frame);
}
bool shows_learning(const Frame& frame) {
  return frame.displayed.look.tab == Tab::learn && has_side_panels(frame);
}
bool shows_one_layer(const Frame& frame) {
  return frame.displayed.look.tab != Tab::layers && frame.displayed.look.tab != Tab::learn &&
         has_side_panels(frame);
}
/// Returns whether the heads of a whole model are presented, with its prediction.
bool presents_layers(const Frame& f) {
  return presents(f) && f.pending.full_model && f.displayed.look.tab == Tab::layers;
}
/// Returns whether a view fills the window or is between the side panels, as it is presented too; of the
/// stages one is presented, and the heads of a whole model with its prediction.
bool shows_view(const Frame& f, Tab tab) {
  return f.displayed.look.tab == tab && !panels::shows_start_page(f);
}
float view_top(const Frame& f, const Regions& r) {
  return r.top + (presents(f) ? 0 : f.metrics.tabs) + r.banner;
}

/// Returns the rectangle of the tabs' views, between the side regions.
ImVec4 view_rect(const Frame& f, const Regions& r) {
  return {r.left + r.grip, view_top(f, r) + 1 + r.lesson_pictures, r.size.x - r.right - r.grip,
          r.bottom - r.lesson - r.animation_bar};
}

/// Returns the rectangle at the left below MODEL and, in narrow windows, below its tabs.
ImVec4 below_model_rect(const Frame& f, const Regions& r) {
  const float tabs = shows_layers(f) ? 0 : panels::side_tabs_height(f);
  const float strip = f.metrics.narrow ? r.next_token : 0;
  return {r.grip, r.top + r.model_height + 1 + strip + tabs, r.left - r.grip, r.bottom};
}

void draw_inspector_and_terms(const Frame& frame) {
  if (panels::lesson_is_in_inspector(frame)) panels::draw_lesson_in_inspector(frame);
  if (shows_layers(frame))
    panels::draw_selected_head(frame);
  else if (shows_learning(frame))
    panels::draw_learning_results(frame);
  else if (frame.displayed.look.tab == Tab::compare && !frame.compared.references.empty())
    panels::draw_compare_list(frame);
  else
    panels::draw_inspector(frame);
  panels::draw_lesson_terms(frame);
}

// Heights of EDIT, at scale 1: as a part of a side that scrolls, with a row and its buttons, with some rows.
constexpr float edit_height = 250, min_edit_height = 210, edit_rows_height = 150;
constexpr float min_model_share = 0.4f;  // of the left side

float height_below_model(const Frame& f) {
  return f.metrics.narrow ? panels::side_tabs_height(f) + panels::next_token_height(f) : 0;
}

/// Returns whether the left side scrolls as one: when MODEL and the panels below it do not fit, but rows of
/// EDIT are seen at once, or would not be seen below a smaller MODEL either.
bool left_side_scrolls(const Frame& f) {
  if (!shows_one_layer(f)) return false;
  const Metrics& m = f.metrics;
  const float side = ImGui::GetIO().DisplaySize.y - m.menu - m.status - 2,
              room = side - height_below_model(f), model = panels::model_panel_height(f);
  if (model + m.px(edit_height) <= room) return false;
  return model + m.px(edit_rows_height) <= room || side * min_model_share + m.px(min_edit_height) > room;
}
bool shows_model(const Frame& f) {
  return shows_one_layer(f) && !left_side_scrolls(f);
}

void draw_part(const Frame& frame, const char* name, void (*draw)(const Frame&), float height) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  platform::begin_child(name, {width, height}, false,
                        ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse);
  draw(frame);
  panels::draw_lesson_marks(frame, name);
  ImGui::EndChild();
  frame.landmarks.mark(std::string("region/") + name, at, {at.x + width, at.y + height});
}

/// Draws all of the left side, from top to bottom.
void draw_left_side(const Frame& frame) {
  const Metrics& m = frame.metrics;
  panels::draw_model(frame);
  const ImVec2 line = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  ImGui::GetWindowDrawList()->AddRectFilled(line, {line.x + width, line.y + 1}, packed(frame.palette.line));
  ImGui::Dummy({width, m.px(8)});
  if (m.narrow) {
    if (panels::has_next_token(frame))
      draw_part(frame, "next token", panels::draw_next_token, panels::next_token_height(frame));
    draw_part(frame, "side tabs", panels::draw_side_tabs, panels::side_tabs_height(frame));
    if (panels::inspector_replaces_edit(frame)) return draw_inspector_and_terms(frame);
  }
  draw_part(frame, "edit", panels::draw_edit, m.px(edit_height));
}

const std::array table_of_panels{
    PanelRow{"model", draw_left_side, true, true,
             [](const Frame&, const Regions& r) { return ImVec4(r.grip, r.top, r.left - r.grip, r.bottom); },
             left_side_scrolls},
    PanelRow{"model", panels::draw_model, true, true,
             [](const Frame&, const Regions& r) {
               return ImVec4(r.grip, r.top, r.left - r.grip, r.top + r.model_height);
             },
             shows_model},
    PanelRow{"side tabs", panels::draw_side_tabs, true, false,
             [](const Frame& f, const Regions& r) {
               const ImVec4 below = below_model_rect(f, r);
               return ImVec4(below.x, below.y - panels::side_tabs_height(f), below.z, below.y);
             },
             [](const Frame& f) { return f.metrics.narrow && shows_model(f); }},
    PanelRow{"edit", panels::draw_edit, true, false, below_model_rect,
             [](const Frame& f) { return shows_model(f) && !panels::inspector_replaces_edit(f); }},
    PanelRow{"whole", panels::draw_full_model, true, true,
             [](const Frame& f, const Regions& r) {
               return ImVec4(r.grip, r.top, r.left - r.grip,
                             f.metrics.narrow ? r.top + r.model_height : r.bottom);
             },
             shows_layers},
    PanelRow{"learning", panels::draw_learning_setup, true, true,
             [](const Frame&, const Regions& r) { return ImVec4(r.grip, r.top, r.left - r.grip, r.bottom); },
             shows_learning},
    PanelRow{"view bar", panels::draw_view_bar, true, false,
             [](const Frame& f, const Regions& r) {
               return ImVec4(r.left + r.grip, r.top, r.size.x - r.right - r.grip, r.top + f.metrics.tabs);
             },
             has_side_panels},
    PanelRow{"banner", panels::draw_banner, true, false,
             [](const Frame& f, const Regions& r) {
               return ImVec4(r.left + r.grip, r.top + f.metrics.tabs + 1, r.size.x - r.right - r.grip,
                             view_top(f, r) + 1 - panels::gradient_banner_height(f));
             },
             [](const Frame& f) { return panels::banner_height(f) > 0 && has_side_panels(f); }},
    PanelRow{"gradient", panels::draw_gradient_banner, true, false,
             [](const Frame& f, const Regions& r) {
               return ImVec4(r.left + r.grip, view_top(f, r) + 1 - panels::gradient_banner_height(f),
                             r.size.x - r.right - r.grip, view_top(f, r) + 1);
             },
             [](const Frame& f) { return panels::gradient_banner_height(f) > 0 && has_side_panels(f); }},
    PanelRow{"stages", panels::draw_stages, true, true, view_rect,
             [](const Frame& f) { return f.displayed.look.tab == Tab::stages && has_side_panels(f); }},
    PanelRow{"stages", panels::draw_presented_stage, false, false, view_rect,
             [](const Frame& f) { return presents(f) && shows_view(f, Tab::stages); }},
    PanelRow{"heading", panels::draw_presented_heading, true, false,
             [](const Frame&, const Regions& r) { return ImVec4(0, 0, r.size.x, r.top); },
             [](const Frame& f) { return presents(f) && !presents_layers(f); }},
    PanelRow{"layers", panels::draw_layers, true, false,
             [](const Frame&, const Regions& r) {
               return ImVec4(0, r.top, std::round(r.size.x * presented_maps_share), r.bottom);
             },
             presents_layers},
    PanelRow{"prediction", panels::draw_presented_prediction, true, true,
             [](const Frame&, const Regions& r) {
               return ImVec4(std::round(r.size.x * presented_maps_share), r.top, r.size.x, r.bottom);
             },
             presents_layers},
    PanelRow{"heads", panels::draw_heads, true, true, view_rect,
             [](const Frame& f) { return shows_view(f, Tab::heads); }},
    PanelRow{"tokens", panels::draw_tokens, true, false, view_rect,
             [](const Frame& f) { return shows_view(f, Tab::tokens); }},
    PanelRow{"compare", panels::draw_compare, true, false, view_rect,
             [](const Frame& f) { return shows_view(f, Tab::compare); }},
    PanelRow{"laboratory", panels::draw_laboratory, true, true, view_rect,
             [](const Frame& f) { return shows_view(f, Tab::laboratory); }},
    PanelRow{"layers", panels::draw_layers, true, false, view_rect,
             [](const Frame& f) { return f.displayed.look.tab == Tab::layers && has_side_panels(f); }},
    PanelRow{"learn", panels::draw_learning, true, false, view_rect,
             [](const Frame& f) { return shows_view(f, Tab::learn); }},
    PanelRow{"exhibit", panels::draw_lesson_pictures, true, false,
             [](const Frame& f, const Regions& r) {
               return ImVec4(r.left + r.grip, view_top(f, r) + 1, r.size.x - r.right - r.grip,
                             view_top(f, r) + 1 + r.lesson_pictures);
             },
             [](const Frame& f) { return f.lesson && !f.lesson->pictures.empty() && has_side_panels(f); }},
    PanelRow{
        "lesson", panels::draw_lesson, true, false,
        [](const Frame&, const Regions& r) {
          return ImVec4(r.left + r.grip, r.bottom - r.lesson, r.size.x - r.right - r.grip, r.bottom);
        },
        [](const Frame& f) { return f.lesson && has_side_panels(f) && !panels::lesson_is_in_inspector(f); }},
    PanelRow{"flight", panels::draw_animation_bar, true, false,
             [](const Frame&, const Regions& r) {
               return ImVec4(r.left + r.grip, r.bottom - r.lesson - r.animation_bar,
                             r.size.x - r.right - r.grip, r.bottom - r.lesson);
             },
             [](const Frame& f) { return panels::animation_bar_height(f) > 0; }},
    PanelRow{"decoding", panels::draw_decoding_bar, true, false,
             [](const Frame&, const Regions& r) {
               return ImVec4(r.left + r.grip, r.bottom - r.lesson - r.animation_bar,
                             r.size.x - r.right - r.grip, r.bottom - r.lesson);
             },
             [](const Frame& f) {
               return panels::decoding_bar_height(f) > 0 && panels::animation_bar_height(f) == 0;
             }},
    PanelRow{"present", panels::draw_present_bar, false, false,
             [](const Frame&, const Regions& r) { return ImVec4(0, r.bottom, r.size.x, r.size.y); },
             presents},
    PanelRow{"next token", panels::draw_next_token, true, false,
             [](const Frame& f, const Regions& r) {
               if (!f.metrics.narrow)
                 return ImVec4(r.size.x - r.right + r.grip, r.top, r.size.x - r.grip, r.top + r.next_token);
               const float top = r.top + r.model_height + 1;
               return ImVec4(r.grip, top, r.left - r.grip, top + r.next_token);
             },
             [](const Frame& f) {
               return has_side_panels(f) && panels::has_next_token(f) && !shows_learning(f) &&
                      !(f.metrics.narrow && left_side_scrolls(f));
             }},
    PanelRow{"inspector", draw_inspector_and_terms, true, true,
             [](const Frame& f, const Regions& r) {
               if (f.metrics.narrow) return below_model_rect(f, r);
               return ImVec4(r.size.x - r.right + r.grip, r.top + r.next_token, r.size.x - r.grip, r.bottom);
             },
             [](const Frame& f) {
               if (!f.metrics.narrow) return has_side_panels(f);
               return has_side_panels(f) &&
                      (shows_layers(f) ||
                       (panels::inspector_replaces_edit(f) && !left_side_scrolls(f) && !shows_learning(f)));
             }},
    PanelRow{"status", panels::draw_status, true, false,
             [](const Frame&, const Regions& r) { return ImVec4(0, r.bottom + 1, r.size.x, r.size.y); },
             [](const Frame& f) { return !presents(f); }},
    PanelRow{"start", panels::draw_start_page, true, false,
             [](const Frame&, const Regions& r) { return ImVec4(0, r.top, r.size.x, r.bottom); },
             panels::shows_start_page},
};

Regions regions(const Frame& frame) {
  const Metrics& m = frame.metrics;
  const ImVec2 size = ImGui::GetIO().DisplaySize;
  Regions r;
  r.size = size;
  r.grip = m.px(4);
  if (presents(frame)) {  // the view alone
    r = {size,
         -r.grip,
         -r.grip,
         r.grip,
         panels::presented_heading_height(frame),
         size.y - panels::present_bar_height(frame),
         0,
         0,
         0,
         0,
         0,
         0};
    return r;
  }
  const float max_width = std::max(m.left, size.x * 0.4f);
  r.left = std::clamp(frame.settings.left_width > 0 ? m.px(frame.settings.left_width) : m.left, m.px(200),
                      max_width);
  r.right = m.narrow ? 0
                     : std::clamp(frame.settings.right_width > 0 ? m.px(frame.settings.right_width) : m.right,
                                  m.px(200), max_width);
  r.top = m.menu + 1;
  if (frame.forms.is_embedded) r.left = r.right = r.top = 0;
  r.bottom = size.y - m.status - 1;
  r.next_token = shows_learning(frame) ? 0 : panels::next_token_height(frame);
  const float wanted = panels::model_panel_height(frame);
  const bool shows_inspector =
      shows_layers(frame) ||
      panels::inspector_replaces_edit(frame);  // a computed cell needs more room than a few rows
  const float side = r.bottom - r.top, min_model_height = side * min_model_share;
  r.model_height =
      std::min(wanted, shows_inspector ? min_model_height
                                       : std::clamp(side - height_below_model(frame) - m.px(min_edit_height),
                                                    min_model_height, side * 0.62f));
  r.banner = panels::banner_height(frame) + panels::gradient_banner_height(frame);
  const float middle = r.size.x - r.left - r.right - 2 * r.grip;
  r.lesson = std::min(panels::lesson_panel_height(frame, middle), (r.bottom - r.top) * 0.55f);
  r.animation_bar = std::max(panels::animation_bar_height(frame), panels::decoding_bar_height(frame));
  r.lesson_pictures =
      panels::lesson_pictures_height(frame, (r.bottom - r.top - m.tabs - r.banner - r.lesson) * 0.55f);
  return r;
}

/// Returns whether the wheel zooms a picture; with Shift, or once it has begun to scroll, it scrolls.
bool wheel_zooms_picture(const Frame& frame) {
  const ImGuiIO& io = ImGui::GetIO();
  const auto& over = frame.displayed.selection.hovered;
  if (!over || io.KeyShift || wheel_scrolls(frame.displayed.selection, io.MousePos.x, io.MousePos.y))
    return false;
  const auto& numbers = frame.displayed.trace.at(over->stage, over->head);
  return wheel_zooms(frame.displayed.look, frame.displayed.selection, *over,
                     {numbers.n_rows(), numbers.n_cols()}, io.KeyCtrl);
}

void record_scroll_position(const Frame& frame) {
  const ImGuiIO& io = ImGui::GetIO();
  if (io.MouseWheel == 0 || wheel_zooms_picture(frame) ||
      !ImGui::IsWindowHovered(ImGuiHoveredFlags_ChildWindows))
    return;
  frame.commands.add(set<&Selection::last_scroll_position>(std::pair(io.MousePos.x, io.MousePos.y)));
}

void draw_panel(const Frame& frame, const PanelRow& panel, const Regions& r) {
  const ImVec4 place = panel.place(frame, r);
  if (place.z <= place.x) return;  // a side that is hidden
  platform::move_to({place.x, place.y});
  const bool bar = panel.draw == panels::draw_view_bar || panel.draw == panels::draw_side_tabs ||
                   panel.draw == panels::draw_banner || panel.draw == panels::draw_gradient_banner ||
                   panel.draw == panels::draw_status || panel.draw == panels::draw_animation_bar ||
                   panel.draw == panels::draw_decoding_bar;
  const bool is_in_center = place.x >= r.left && place.x > 0 && place.z <= r.size.x - r.right;
  const float side = place.x == 0 && place.z == r.size.x ? frame.metrics.padding
                     : is_in_center                      ? frame.metrics.center_padding - r.grip
                                                         : frame.metrics.padding - r.grip;
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding,
                      {side, bar ? 0
                                 : frame.metrics.px(panel.draw == panels::draw_layers ? 2
                                                    : frame.metrics.compact           ? 8
                                                                                      : 10)});
  const ImGuiWindowFlags flags =
      platform::padded | (panel.draw == panels::draw_stages ? ImGuiWindowFlags_HorizontalScrollbar : 0) |
      (!panel.scrolls               ? ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse
       : wheel_zooms_picture(frame) ? ImGuiWindowFlags_NoScrollWithMouse
                                    : 0);
  platform::begin_child(panel.name, {std::max(1.0f, place.z - place.x), std::max(1.0f, place.w - place.y)},
                        false, flags);
  ImGui::PopStyleVar();  // it is for the panel alone: tooltips and menus have their own
  frame.landmarks.mark(std::string("region/") + panel.name, {place.x, place.y}, {place.z, place.w});
  panel.draw(frame);
  record_scroll_position(frame);
  if (panel.draw == panels::draw_stages) panels::draw_decoding_marks(frame);
  if (!presents(frame)) panels::draw_lesson_marks(frame, panel.name);
  ImGui::EndChild();
}

/// Draws the background of the views; the rest of the window has that of the panels.
void draw_ground(const Frame& frame, const Regions& r) {
  ImGui::GetWindowDrawList()->AddRectFilled({r.left, r.top}, {r.size.x - r.right, r.bottom},
                                            packed(frame.palette.background.back));
}

void draw_lines(const Frame& frame, const Regions& r) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImU32 line = packed(frame.palette.line);
  list->AddRectFilled({0, r.top - 1}, {r.size.x, r.top}, line);
  list->AddRectFilled({0, r.bottom}, {r.size.x, r.bottom + 1}, line);
  if (r.left > 0) list->AddRectFilled({r.left, r.top}, {r.left + 1, r.bottom}, line);
  if (r.right > 0) list->AddRectFilled({r.size.x - r.right - 1, r.top}, {r.size.x - r.right, r.bottom}, line);
  if (r.left > 0 && (shows_model(frame) || (shows_layers(frame) && frame.metrics.narrow)))
    list->AddRectFilled({frame.metrics.padding, r.top + r.model_height},
                        {r.left - frame.metrics.padding, r.top + r.model_height + 1}, line);
  if (r.right > 0 && r.next_token > 0)
    list->AddRectFilled({r.size.x - r.right, r.top + r.next_token - 1}, {r.size.x, r.top + r.next_token},
                        line);
  list->AddRectFilled({r.left + 1, r.top + frame.metrics.tabs},
                      {r.size.x - r.right - 1, r.top + frame.metrics.tabs + 1}, line);
}

/// Draws a line that can be dragged; returns the mouse's x in pixels while it is.
std::optional<float> draw_splitter(const Frame& frame, const char* name, float x, const Regions& r) {
  const float half = frame.metrics.px(4);
  platform::move_to({x - half, r.top});
  widgets::hit_area(name, {2 * half, r.bottom - r.top});
  frame.landmarks.mark_item(name);
  if (ImGui::IsItemHovered() || ImGui::IsItemActive()) ImGui::SetMouseCursor(ImGuiMouseCursor_ResizeEW);
  const bool is_moved = ImGui::IsItemActive() && ImGui::GetIO().MouseDelta.x != 0;
  if (ImGui::IsItemHovered() && ImGui::IsMouseDoubleClicked(0)) {
    frame.commands.add(set<&Settings::left_width>(0), set<&Settings::right_width>(0));
    return std::nullopt;
  }
  return is_moved ? std::optional(ImGui::GetIO().MousePos.x) : std::nullopt;
}

void draw_splitters(const Frame& frame, const Regions& r) {
  const float scale = frame.metrics.scale;
  if (const auto x = draw_splitter(frame, "splitter/left", r.left, r))
    frame.commands.add(set<&Settings::left_width>(*x / scale));
  if (r.right <= 0) return;
  if (const auto x = draw_splitter(frame, "splitter/right", r.size.x - r.right, r))
    frame.commands.add(set<&Settings::right_width>((r.size.x - *x) / scale));
}

}  // namespace

void draw_window(const Frame& frame) {
  const Regions r = regions(frame);
  const bool alone = presents(frame) || frame.forms.is_embedded;
  ImGui::SetNextWindowPos({0, 0});
  ImGui::SetNextWindowSize(r.size);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {0, 0});
  ImGui::Begin("attnscope", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings |
                   (alone ? 0 : ImGuiWindowFlags_MenuBar) | ImGuiWindowFlags_NoBringToFrontOnFocus |
                   ImGuiWindowFlags_NoScrollWithMouse | ImGuiWindowFlags_NoBackground);
  ImGui::PopStyleVar();
  if (is_pointing(frame.displayed.look, frame.displayed.selection))
    frame.commands.add(ClearHover{});  // the item hovered in this frame sets it again
  if (!alone) panels::draw_menu_bar(frame);
  draw_ground(frame, r);
  const bool starts = panels::shows_start_page(frame);
  if (!alone && !starts) draw_splitters(frame, r);
  for (const PanelRow& panel : table_of_panels)
    if (panel.shown(frame)) draw_panel(frame, panel, r);
  if (!presents(frame) && !starts) draw_lines(frame, r);
  ImGui::End();
  panels::draw_animation(frame);
  panels::draw_tour(frame);
  panels::draw_cell_menu(frame);
  panels::draw_dialogs(frame);
}

}  // namespace app
