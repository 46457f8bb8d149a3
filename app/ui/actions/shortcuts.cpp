#include "app/ui/actions/shortcuts.hpp"

#include "app/ui/actions/actions.hpp"
#include "core/formats/files/number.hpp"

namespace app {

namespace editing = core::editing;

void handle_key(const KeyPress& press, const Situation& situation, Commands& commands) {
  const View& view = situation.newest.view;
  if (view.dialog != Dialog::none) return;
  if (view.typed && view.typed->waiting && !press.ctrl) return;  // it belongs to the field
  const std::vector<Action> all = actions(situation);
  if (const Action* action = action_of(all, press, view)) perform(*action, situation, commands);
}

std::optional<std::string> copied_text(const Situation& s) {
  const auto& [model, view] = s.newest;
  if (view.cursor) {
    const auto* matrix = editing::find_matrix(model, {view.edited.name, view.sequence});
    if (matrix && view.cursor->row < (*matrix)->n_rows && view.cursor->column < (*matrix)->n_cols)
      return core::formats::number_text((**matrix)(view.cursor->row, view.cursor->column));
  }
  const auto& cell = s.view.pinned ? s.view.pinned : s.view.hovered;
  if (!cell) return std::nullopt;
  const auto& stage = core::attention::info(cell->stage);
  if (!stage.present(s.model) || (stage.per_head && cell->head >= s.trace.heads.size())) return std::nullopt;
  const core::attention::StageMatrix& numbers = stage.matrix(s.trace, cell->head);
  if (cell->row >= numbers.n_rows() || cell->column >= numbers.n_cols()) return std::nullopt;
  return core::formats::number_text(numbers(cell->row, cell->column));
}

}  // namespace app
