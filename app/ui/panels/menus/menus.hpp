#pragma once

#include <span>
#include <string>

#include "app/ui/actions/actions.hpp"
#include "app/ui/frame.hpp"

namespace app::panels {

/// What actions may look at in a frame.
Situation situation_of(const Frame& frame);

/// The lines of a menu and its submenus, out of a list of actions: each asks for what it does, or says why it
/// cannot.
///
/// Landmarks "menu/<id>", and "menu/<path>" for submenus.
void draw_action_lines(const Frame& frame, const Situation& situation, std::span<const Action> all,
                       const std::string& menu);

/// A button for the action with that id, if there is one, with its title and key as the tooltip, or why it
/// cannot be done now.
void draw_action_button(const Frame& frame, const Situation& situation, std::span<const Action> all,
                        const char* id, const char* landmark, const char* words);

/// The one menu of a stage, which a right click on the last item opens: large, folded, colors, numbers,
/// copy, export.
///
/// place parts the menus of items that mean the same stage. Landmarks as of draw_action_lines.
void draw_stage_menu(const Frame& frame, const char* place, Stage stage, std::size_t head);

/// An item of that name over words that are drawn there, for a stage: explained on hover, with that remark.
/// True when it was pressed.
bool title_item(const Frame& frame, const std::string& name, Stage stage, ImVec2 min, ImVec2 size,
                const char* remark);

/// The title of a stage as an item of that name over words that are drawn there: explained on hover, a press
/// shows the stage large, a right click opens its menu.
void draw_title_area(const Frame& frame, const std::string& name, Stage stage, std::size_t head, ImVec2 min,
                     ImVec2 size);

}  // namespace app::panels
