#pragma once

#include <span>
#include <string>

#include "app/ui/actions/actions.hpp"
#include "app/ui/frame.hpp"

namespace app::panels {

/// Returns the state of a frame that actions depend on.
ActionContext situation_of(const Frame& frame);

/// Draws the items of a menu and its submenus from a list of actions; each performs its action or says why it
/// cannot.
///
/// Landmarks "menu/<id>", and "menu/<path>" for submenus.
void draw_menu_items(const Frame& frame, const ActionContext& context, std::span<const Action> all,
                     const std::string& menu);

/// Draws a button for the action with that id, if it exists; the tooltip is its title and key, or why it is
/// not available.
void draw_action_button(const Frame& frame, const ActionContext& context, std::span<const Action> all,
                        const char* id, const char* landmark, const char* words);

/// Draws the items of a stage in an open menu: large, folded, colors, numbers, copy, export.
void draw_stage_items(const Frame& frame, Stage stage, std::size_t head);

/// Draws the menu of a stage, which a right click on the last item opens.
///
/// `place` distinguishes items of the same stage. Landmarks as in draw_menu_items().
void draw_stage_menu(const Frame& frame, const char* place, Stage stage, std::size_t head);

/// Adds an item of that name over a drawn title of a stage, explained on hover, with a remark; returns
/// whether it was pressed.
bool title_item(const Frame& frame, const std::string& name, Stage stage, ImVec2 min, ImVec2 size,
                const char* remark);

/// Adds an item of that name over a drawn title of a stage: explained on hover, a click shows the stage
/// large, a right click opens its menu.
void draw_title_area(const Frame& frame, const std::string& name, Stage stage, std::size_t head, ImVec2 min,
                     ImVec2 size);

}  // namespace app::panels
