#include "app/ui/panels/menus/action_menu.hpp"

#include <set>

#include "app/ui/widgets/buttons.hpp"
#include "app/ui/widgets/heatmap/heatmap_view.hpp"
#include "app/ui/widgets/text.hpp"

namespace app::panels {
namespace {

/// The submenu of a menu on the way to a path, or "" when the path is the menu itself.
std::string next_on_the_way(const std::string& menu, const std::string& path) {
  if (path == menu) return "";
  const std::size_t begin = menu.size() + 1;
  return path.substr(begin, path.find('/', begin) - begin);
}

bool is_within(const std::string& menu, const std::string& path) {
  return path.starts_with(menu) && (path.size() == menu.size() || path[menu.size()] == '/');
}

void draw_submenu(const Frame& frame, const Situation& situation, std::span<const Action> all,
                  const std::string& path, const std::string& words) {
  const bool open = ImGui::BeginMenu(words.c_str());
  if (!open) frame.landmarks.mark_item("menu/" + path);
  if (!open) return;
  draw_action_lines(frame, situation, all, path);
  ImGui::EndMenu();
  frame.landmarks.mark_item("menu/" + path);
}

}  // namespace

Situation situation_of(const Frame& frame) {
  return {frame.shown,        frame.newest,   frame.settings,
          frame.forms,        frame.document, [&frame] { return widgets::all_color_ends(frame); },
          frame.work.progress};
}

void draw_action_line(const Frame& frame, const Situation& situation, const Action& action) {
  const std::string why = why_not(action, situation), key = key_words(action, situation.newest);
  const bool on = action.checked && action.checked(situation);
  if (ImGui::MenuItem((action.title + "##" + action.id).c_str(), key.empty() ? nullptr : key.c_str(), on,
                      action.command && why.empty()))
    perform(action, situation, frame.commands);
  frame.landmarks.mark_item("menu/" + action.id);
  if (const std::string& words = why.empty() ? action.about : "Not now: " + why; !words.empty())
    widgets::tooltip(words);
}

void draw_action_button(const Frame& frame, const Situation& situation, std::span<const Action> all,
                        const char* id, const char* landmark, const char* words) {
  const Action* action = find_action(all, id);
  if (!action) return;
  const std::string key = key_words(*action, situation.newest), why = why_not(*action, situation);
  const std::string help =
      why.empty() ? action->title + (key.empty() ? "" : " (" + key + ")") : "Not now: " + why;
  if (widgets::button(frame, landmark, words, help.c_str())) perform(*action, situation, frame.commands);
}

void draw_action_lines(const Frame& frame, const Situation& situation, std::span<const Action> all,
                       const std::string& menu) {
  const bool is_top = menu.find('/') == menu.npos;
  const Action* above = nullptr;
  std::set<std::string> drawn;  // submenus
  for (const Action& action : all) {
    if (!is_within(menu, action.menu)) continue;
    const std::string submenu = next_on_the_way(menu, action.menu);
    if (!submenu.empty() && !drawn.insert(submenu).second) continue;
    const int Action::*group = is_top ? &Action::group : &Action::part;
    if (above && above->*group != action.*group) ImGui::Separator();
    above = &action;
    if (submenu.empty())
      draw_action_line(frame, situation, action);
    else
      draw_submenu(frame, situation, all, menu + "/" + submenu, submenu);
  }
}

}  // namespace app::panels
