#pragma once

#include <array>
#include <concepts>
#include <type_traits>
#include <utility>

#include "app/ui/actions/actions.hpp"

/// Rows of the table of actions, by menu.
namespace app::rows {

std::vector<Action> file_actions(const ActionContext& context);
std::vector<Action> edit_actions(const ActionContext& context);
std::vector<Action> view_actions(const ActionContext& context);
std::vector<Action> model_actions(const ActionContext& context);
std::vector<Action> compare_actions(const ActionContext& context);
std::vector<Action> lesson_actions(const ActionContext& context);
std::vector<Action> help_actions(const ActionContext& context);

// These append rows to a list.
using ActionRows = std::vector<Action>;
void add_copy_actions(ActionRows& rows, const ActionContext& context, const std::string& menu,
                      const std::optional<CellRef>& cell = {});
/// Appends rows that copy the whole matrix of a cell in every form, as one menu.
void add_matrix_copy_actions(ActionRows& rows, const ActionContext& context, const std::string& menu,
                             const CellRef& cell);
/// Appends the actions for one stage of a head, as the menu "Stage".
void add_stage_menu(ActionRows& rows, const ActionContext& context, Stage stage, std::size_t head);
void add_model_toggles(ActionRows& rows, const ActionContext& context);
void add_mistakes(ActionRows& rows, const ActionContext& context);
void add_heads(ActionRows& rows, const ActionContext& context);
void add_stages(ActionRows& rows, const ActionContext& context);
void add_colors(ActionRows& rows, const ActionContext& context);
/// Appends the tab of whole models, then the other actions about them.
void add_layers_tab(ActionRows& rows, const ActionContext& context);
void add_full_model(ActionRows& rows, const ActionContext& context);
/// Returns a cell as the number whose gradients are shown.
core::graph::Target target_of(const CellRef& cell);
void add_gradients(ActionRows& rows, const ActionContext& context);
/// Appends the tab of a run of training, then the other actions about it, and the tasks.
void add_learning(ActionRows& rows, const ActionContext& context);
void add_learning_tasks(ActionRows& rows);
void add_presenting(ActionRows& rows);
void add_decoding(ActionRows& rows);
void add_navigation(ActionRows& rows, const ActionContext& context);
void add_editor_keys(ActionRows& rows);

/// The matrices that EDIT can show, in the order of its tabs.
inline constexpr std::array editable_matrices = [] {
  using enum core::editing::MatrixName;
  return std::array{embeddings,  key_embeddings, query_weight,  key_weight,  value_weight, output_weight,
                    query_bias,  key_bias,       value_bias,    output_bias, query_norm,   key_norm,
                    frequencies, slopes,         relative_bias, score_bias,  sink};
}();

/// Returns the stage that keys apply to: the pinned one, else the displayed one.
Stage active_stage(const ActionContext& context);

// Building blocks of the rows.
using CommandList = std::vector<Command>;

inline CommandList edit(core::editing::Edit e) {
  return {ApplyEdit{std::move(e)}};
}
template <class... Verbs>
std::function<CommandList(const ActionContext&)> always(Verbs... verbs) {
  return [commands = CommandList{std::move(verbs)...}](const ActionContext&) { return commands; };
}

/// Returns a disabled_reason that gives these words unless the condition holds.
template <class Holds>
std::function<std::string(const ActionContext&)> unless(Holds holds, std::string words) {
  return
      [holds, words = std::move(words)](const ActionContext& s) { return holds(s) ? std::string() : words; };
}

/// Sets the columns of a row that not every row has; valid until another one is added.
class ActionRow {
 public:
  explicit ActionRow(Action& row) : row_(row) {}

  ActionRow about(std::string words) const { return with(row_.about, std::move(words)); }
  /// Shows what it is about below its title.
  ActionRow shows_about() const { return with(row_.shows_about, true); }
  ActionRow section(std::string words) const { return with(row_.section, std::move(words)); }
  ActionRow remark(std::string words) const { return with(row_.remark, std::move(words)); }
  ActionRow keys(std::vector<KeyPress> presses) const { return with(row_.keys, std::move(presses)); }
  ActionRow keys(std::same_as<KeyPress> auto... presses) const { return keys(std::vector{presses...}); }
  ActionRow keys_apply(bool (*in_view)(const Pending&)) const { return with(row_.keys_apply, in_view); }
  ActionRow sheet_text(std::string words) const { return with(row_.sheet_text, std::move(words)); }
  ActionRow key_text(std::string words) const { return with(row_.key_text, std::move(words)); }
  ActionRow disabled_reason(std::function<std::string(const ActionContext&)> why) const {
    return with(row_.disabled_reason, std::move(why));
  }
  template <class Holds>
  ActionRow only_if(Holds holds, std::string otherwise) const {
    return disabled_reason(unless(holds, std::move(otherwise)));
  }
  /// Lets it send verbs, or those that make(context) returns, one or a list.
  template <class... Verbs>
  ActionRow does(Verbs... verbs) const {
    return with(row_.command, always(std::move(verbs)...));
  }
  template <class Make>
  ActionRow command(Make make) const {
    if constexpr (std::is_convertible_v<std::invoke_result_t<Make, const ActionContext&>, CommandList>)
      return with(row_.command, std::move(make));
    else
      return with(row_.command, [make](const ActionContext& now) { return CommandList{make(now)}; });
  }
  ActionRow checked(std::function<bool(const ActionContext&)> is_on) const {
    return with(row_.checked, std::move(is_on));
  }

 private:
  ActionRow with(auto& column, auto value) const {
    column = std::move(value);
    return *this;
  }
  Action& row_;
};

/// Appends an action to the table.
inline ActionRow add(ActionRows& rows, std::string id, std::string title, std::string menu, int group = 0,
                     int part = 0) {
  rows.push_back({std::move(id), std::move(title), std::move(menu), group, part});
  return ActionRow(rows.back());
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
constexpr KeyPress alt(Key key) {
  return {key, false, false, true};
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
