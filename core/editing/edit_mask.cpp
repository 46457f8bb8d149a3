#include <algorithm>

#include "core/editing/edit_cases.hpp"

namespace core::editing::cases {
namespace {

using attention::MaskCell;

bool follows_the_rule(const Model& model, const MaskCell& cell) {
  return cell.visible == attention::follows_causality(model, cell.row, cell.column);
}

}  // namespace

void drop_cells_that_follow_the_rule(Model& model) {
  std::erase_if(model.mask.cells, [&](const MaskCell& c) { return follows_the_rule(model, c); });
}

void change(Model& model, const SetCausal& edit) {
  if (model.mask.causal == edit.causal) return;
  model.mask.causal = edit.causal;
  drop_cells_that_follow_the_rule(model);
}

void change(Model& model, const SwitchMaskCell& edit) {
  require_index("mask", edit.row, model.n_tokens(), "rows");
  require_index("mask[" + std::to_string(edit.row) + "]", edit.column, model.n_keys(), "columns");
  const MaskCell cell{edit.row, edit.column, edit.visible};
  auto& cells = model.mask.cells;
  auto place = std::ranges::lower_bound(cells, cell.place(), {}, &MaskCell::place);
  if (place != cells.end() && place->place() == cell.place()) place = cells.erase(place);
  if (!follows_the_rule(model, cell)) cells.insert(place, cell);
}

void change(Model& model, const ClearMaskCells&) {
  model.mask.cells.clear();
}

}  // namespace core::editing::cases
