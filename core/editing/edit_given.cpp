#include <algorithm>

#include "core/editing/edit_cases.hpp"
#include "core/graph/given_model.hpp"
#include "core/graph/stages.hpp"

namespace core::editing::cases {

using attention::GivenCell;
using attention::Stage;

void change(Model& model, const GiveStage& edit) {
  give(model, edit.stage);
}

void change(Model& model, const ComputeStage& edit) {
  take_back(model, edit.stage);
}

void change(Model& model, const TypeOver& edit) {
  auto& cells = model.given.cells;
  const auto place = std::ranges::lower_bound(cells, edit.place, {}, &GivenCell::place);
  const bool found = place != cells.end() && place->place == edit.place;
  if (!edit.value) {
    if (found) cells.erase(place);
    return;
  }
  // What does not fit is refused here: for others, a cell that fits no more is simply forgotten.
  const attention::StageInfo& stage = info(edit.place.stage);
  if (edit.place.stage == Stage::embeddings || edit.place.stage == Stage::key_embeddings ||
      edit.place.stage == Stage::mask || !stage.present(model))
    refuse(stage.name, "no cell of it can be typed over");
  const attention::StageShape shape = shape_of(model, edit.place.stage);
  require_index("embeddings", edit.place.sequence, model.sequences.size(), "sequences");
  require_index(stage.name, edit.place.head, n_matrices(model, stage.stage), "heads");
  require_index(stage.name, edit.place.row, shape.n_rows, "rows");
  require_index(stage.name, edit.place.column, shape.n_cols, "columns");
  if (found)
    place->value = *edit.value;
  else
    cells.insert(place, {edit.place, *edit.value});
}

void change(Model& model, const ClearTypedCells&) {
  model.given.cells.clear();
}

void change(Model& model, const SwitchHead& edit) {
  require_index("heads_off", edit.head, model.n_heads, "heads");
  auto& off = model.heads_off;
  std::erase(off, edit.head);
  if (!edit.on) off.insert(std::ranges::lower_bound(off, edit.head), edit.head);
}

}  // namespace core::editing::cases
