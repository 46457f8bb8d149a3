#include "app/ui/actions/shortcuts.hpp"

#include "app/ui/actions/actions.hpp"
#include "core/text/number.hpp"

namespace app {

namespace editing = core::editing;

void handle_key(const KeyPress& press, const Situation& situation, Commands& commands) {
  const Forms& forms = situation.forms;
  if (forms.dialog != Dialog::none) return;
  if (forms.typed && forms.typed->waiting && !press.ctrl) return;  // it belongs to the field
  const std::vector<Action> all = actions(situation);
  if (const Action* action = action_of(all, press, situation.newest)) perform(*action, situation, commands);
}

std::optional<std::string> copied_text(const Situation& s) {
  const auto& [model, look, selection] = s.newest;
  if (selection.cursor) {
    const auto* matrix = editing::find_matrix(model, {look.edited.name, look.sequence});
    if (matrix && selection.cursor->row < (*matrix)->n_rows && selection.cursor->column < (*matrix)->n_cols)
      return core::text::number_text((**matrix)(selection.cursor->row, selection.cursor->column));
  }
  const auto& cell = s.shown.selection.pinned ? s.shown.selection.pinned : s.shown.selection.hovered;
  if (!cell) return std::nullopt;
  const auto& stage = core::attention::info(cell->stage);
  if (!stage.present(s.shown.model) || (stage.per_head && cell->head >= s.shown.trace.heads.size()))
    return std::nullopt;
  const core::attention::StageMatrix& numbers = stage.matrix(s.shown.trace, cell->head);
  if (cell->row >= numbers.n_rows() || cell->column >= numbers.n_cols()) return std::nullopt;
  return core::text::number_text(numbers(cell->row, cell->column));
}

}  // namespace app
