#include "app/ui/panels/menus/menus.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <set>
#include <vector>

#include "app/theme/imgui_compat.hpp"
#include "app/ui/actions/action_rows.hpp"
#include "app/ui/widgets/drawing.hpp"
#include "app/ui/widgets/fields.hpp"
#include "app/ui/widgets/heatmap/heatmap_view.hpp"

namespace app::panels {

namespace {

/// Returns the submenu of a menu on the way to a path, or "" when the path is the menu itself.
std::string next_submenu(const std::string& menu, const std::string& path) {
  if (path == menu) return "";
  const std::size_t begin = menu.size() + 1;
  return path.substr(begin, path.find('/', begin) - begin);
}

bool is_within(const std::string& menu, const std::string& path) {
  return path.starts_with(menu) && (path.size() == menu.size() || path[menu.size()] == '/');
}

void draw_submenu(const Frame& frame, const ActionContext& context, std::span<const Action> all,
                  const std::string& path, const std::string& words) {
  const ImGuiStyle& style = ImGui::GetStyle();
  ImGui::PushStyleVar(ImGuiStyleVar_ChildBorderSize, style.PopupBorderSize);  // as other menus
  ImGui::PushStyleVar(ImGuiStyleVar_ItemInnerSpacing,
                      {-1, style.ItemInnerSpacing.y});  // by which they overlap
  const bool open = ImGui::BeginMenu(words.c_str());
  ImGui::PopStyleVar(2);
  if (!open) frame.landmarks.mark_item("menu/" + path);
  if (!open) return;
  draw_menu_items(frame, context, all, path);
  ImGui::EndMenu();
  frame.landmarks.mark_item("menu/" + path);
}

}  // namespace

ActionContext situation_of(const Frame& frame) {
  return {frame.displayed,    frame.pending,  frame.settings,
          frame.forms,        frame.document, [&frame] { return all_color_ends(frame); },
          frame.work.progress};
}

namespace {

/// Draws one item of a menu, with a remark at the right if it has no key.
void draw_menu_item(const Frame& frame, const ActionContext& context, const Action& action,
                    const std::string& remark) {
  const std::string why = disabled_reason(action, context),
                    key = shortcut_text(action, context.pending, context.forms.in_browser);
  const std::string& at_right = key.empty() ? remark : key;
  const bool on = action.checked && action.checked(context);
  if (ImGui::MenuItem((action.title + "##" + action.id).c_str(),
                      at_right.empty() ? nullptr : at_right.c_str(), on, action.command && why.empty()))
    perform(action, context, frame.commands);
  frame.landmarks.mark_item("menu/" + action.id);
  if (action.shows_about && why.empty()) {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float width = frame.metrics.px(360);
    draw_text_within(frame.fonts.sans13, {at.x, at.y - frame.metrics.px(3)}, width, frame.palette.dim,
                     action.about);
    ImGui::Dummy({width, frame.metrics.px(14)});
    return;
  }
  if (const std::string& words = why.empty() ? action.about : "Not available: " + why; !words.empty())
    tooltip(words);
}

/// Returns whether a menu has a search field: a list of many lines, in groups.
bool is_searchable(std::span<const Action> all, const std::string& menu) {
  constexpr std::ptrdiff_t min_lines = 15;
  const auto slashes = std::ranges::count(menu, '/');  // a list within a list is searched by the outer one
  const auto is_in_list = [&](const Action& action) {
    return !action.section.empty() && (action.menu == menu || (slashes == 1 && is_within(menu, action.menu)));
  };
  return std::ranges::count_if(all, is_in_list) >= min_lines;
}

/// Draws the search field of a menu that has just opened or is searched; returns what is searched for.
std::string draw_menu_search(const Frame& frame) {
  const bool appears = ImGui::IsWindowAppearing();
  const std::string before = appears ? "" : frame.forms.search.text;
  std::vector<char> buffer(before.begin(), before.end());
  buffer.resize(before.size() + 256);
  // The menu takes the focus again in the frame after it opened.
  constexpr int focus_frames = 3;
  int& n_frames = *ImGui::GetStateStorage()->GetIntRef(ImGui::GetID("frames"), 0);
  n_frames = appears ? 1 : n_frames + 1;
  if (n_frames <= focus_frames) platform::focus_next_item();
  ImGui::SetNextItemWidth(std::max(frame.metrics.px(260), ImGui::GetContentRegionAvail().x));
  ImGui::InputTextWithHint("##search", "Search", buffer.data(), buffer.size());
  frame.landmarks.mark_item("menu/search");
  const std::string text = buffer.data();
  if (text != frame.forms.search.text) frame.commands.add(set<&ActionSearch::text>(text));
  return text;
}

/// Draws the items of a menu and its submenus that match a text, with their submenus.
void draw_found_items(const Frame& frame, const ActionContext& context, std::span<const Action> all,
                      const std::string& menu, const std::string& text) {
  bool found = false;
  for (const Action& action : all) {
    if (!is_within(menu, action.menu) || !fuzzy_match(text, action.title + " " + action.about)) continue;
    const std::string submenu = next_submenu(menu, action.menu);
    draw_menu_item(frame, context, action, submenu.empty() ? action.remark : submenu);
    found = true;
  }
  if (!found) draw_text(frame.fonts.sans14, ImGui::GetCursorScreenPos(), frame.palette.dim, "No match.");
  if (!found) ImGui::Dummy({1, frame.metrics.px(24)});
}

}  // namespace

void draw_action_button(const Frame& frame, const ActionContext& context, std::span<const Action> all,
                        const char* id, const char* landmark, const char* words) {
  const Action* action = find_action(all, id);
  if (!action) return;
  const std::string key = shortcut_text(*action, context.pending, context.forms.in_browser),
                    why = disabled_reason(*action, context);
  const std::string help =
      why.empty() ? action->title + (key.empty() ? "" : " (" + key + ")") : "Not available: " + why;
  if (button(frame, landmark, words, help.c_str())) perform(*action, context, frame.commands);
}

void draw_menu_items(const Frame& frame, const ActionContext& context, std::span<const Action> all,
                     const std::string& menu) {
  const bool is_top = menu.find('/') == menu.npos;
  if (is_searchable(all, menu))
    if (const std::string text = draw_menu_search(frame); !text.empty())
      return draw_found_items(frame, context, all, menu, text);
  const Action* above = nullptr;
  std::set<std::string> drawn;  // submenus
  for (const Action& action : all) {
    if (!is_within(menu, action.menu)) continue;
    const std::string submenu = next_submenu(menu, action.menu);
    if (!submenu.empty() && !drawn.insert(submenu).second) continue;
    const int Action::*group = is_top ? &Action::group : &Action::part;
    if (above && above->*group != action.*group) ImGui::Separator();
    if (is_top && submenu.empty() && !action.section.empty() && (!above || above->section != action.section))
      paragraph(frame.fonts.sans13, frame.palette.faint, frame.metrics.px(200), action.section);
    above = &action;
    if (submenu.empty())
      draw_menu_item(frame, context, action, action.remark);
    else
      draw_submenu(frame, context, all, menu + "/" + submenu, submenu);
  }
  // Else a submenu under the mouse would open again.
  if (platform::key_pressed(ImGuiKey_Escape, false)) ImGui::CloseCurrentPopup();
}

void draw_stage_items(const Frame& frame, Stage stage, std::size_t head) {
  const ActionContext context = situation_of(frame);
  rows::ActionRows all;
  rows::add_stage_menu(all, context, stage, head);
  draw_menu_items(frame, context, all, "Stage");
}

void draw_stage_menu(const Frame& frame, const char* place, Stage stage, std::size_t head) {
  const std::string name = fmt::format("{}/{}/{}", place, core::attention::info(stage).name, head);
  if (ImGui::IsItemHovered() && ImGui::IsMouseReleased(ImGuiMouseButton_Right))
    ImGui::OpenPopup(name.c_str());
  if (!ImGui::BeginPopup(name.c_str())) return;
  platform::push_font(frame.fonts.sans15);
  draw_stage_items(frame, stage, head);
  ImGui::PopFont();
  ImGui::EndPopup();
}

bool title_item(const Frame& frame, const std::string& name, Stage stage, ImVec2 min, ImVec2 size,
                const char* remark) {
  platform::move_to(min);
  const bool pressed = hit_area(name.c_str(), size);
  frame.landmarks.mark_item(name);
  const ImVec2 max = ImGui::GetItemRectMax();
  draw_focus(frame, {min.x - 3, min.y - 1}, {max.x + 3, max.y + 1});
  if (ImGui::IsItemHovered()) {
    ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
    draw_rect({min.x, max.y - 1}, {max.x, max.y}, frame.palette.faint);
    if (const auto* term = term_of(stage)) explain_term(frame, *term, remark);
  }
  return pressed;
}

void draw_title_area(const Frame& frame, const std::string& name, Stage stage, std::size_t head, ImVec2 min,
                     ImVec2 size) {
  if (title_item(frame, name, stage, min, size, "Click to show it large; right-click for more.")) {
    frame.commands.add(set<&Look::large>(stage), set<&Look::tab>(Tab::stages));
    if (core::attention::info(stage).per_head) frame.commands.add(set<&Look::head>(head));
  }
  draw_stage_menu(frame, name.c_str(), stage, head);
}

}  // namespace app::panels
