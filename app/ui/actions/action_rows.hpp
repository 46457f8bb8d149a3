#pragma once

#include <utility>

#include "app/ui/actions/actions.hpp"

/// Rows of the table of actions, by menu.
namespace app::rows {

std::vector<Action> of_file(const Situation& situation);
std::vector<Action> of_edit(const Situation& situation);
std::vector<Action> of_view(const Situation& situation);
std::vector<Action> of_model(const Situation& situation);
std::vector<Action> of_compare(const Situation& situation);
std::vector<Action> of_lessons(const Situation& situation);
std::vector<Action> of_help(const Situation& situation);

// These append rows to a list.
using Rows = std::vector<Action>;
void add_copying(Rows& rows, const Situation& situation, const std::string& menu,
                 const std::optional<CellRef>& cell = {});
/// Appends rows that copy the whole matrix of a cell in every form, as one menu.
void add_copying_matrix(Rows& rows, const Situation& situation, const std::string& menu, const CellRef& cell);
/// Appends the actions for one stage of a head, as the menu "Stage".
void add_stage_menu(Rows& rows, const Situation& situation, Stage stage, std::size_t head);
void add_switches(Rows& rows, const Situation& situation);
void add_mistakes(Rows& rows, const Situation& situation);
void add_heads(Rows& rows, const Situation& situation);
void add_stages(Rows& rows, const Situation& situation);
void add_colors(Rows& rows, const Situation& situation);
void add_whole_model(Rows& rows, const Situation& situation);
void add_presenting(Rows& rows);
void add_decoding(Rows& rows);
void add_walking(Rows& rows, const Situation& situation);
void add_editor_keys(Rows& rows);

/// Returns the stage that keys apply to: the pinned one, else the displayed one.
Stage stage_at_hand(const Situation& situation);

// Building blocks of the rows.
using Asked = std::vector<Command>;

inline Asked edit(core::editing::Edit e) {
  return {ApplyEdit{std::move(e)}};
}
template <class... Verbs>
std::function<Asked(const Situation&)> always(Verbs... verbs) {
  return [commands = Asked{std::move(verbs)...}](const Situation&) { return commands; };
}
inline std::function<Asked(const Situation&)> shows(Dialog dialog) {
  return always(ShowDialog{dialog});
}

/// Returns a why_not that gives these words unless the condition holds.
template <class Holds>
std::function<std::string(const Situation&)> unless(Holds holds, std::string words) {
  return [holds, words = std::move(words)](const Situation& s) { return holds(s) ? std::string() : words; };
}

constexpr KeyPress plain(Key key) {
  return {key};
}
constexpr KeyPress ctrl(Key key) {
  return {key, true};
}
constexpr KeyPress shift(Key key) {
  return {key, false, true};
}
constexpr KeyPress ctrl_shift(Key key) {
  return {key, true, true};
}

// Views in which keys apply.
inline bool outside_editor(const Pending& view) {
  return !view.selection.cursor;
}
inline bool in_editor(const Pending& view) {
  return view.selection.cursor.has_value();
}
inline bool in_tokens(const Pending& view) {
  return view.look.tab == Tab::tokens && !view.selection.cursor;
}

}  // namespace app::rows
