#include "app/state/view_bounds.hpp"

#include <algorithm>

#include "app/state/pinning.hpp"

namespace app {

void keep_within(View& view, const core::attention::Model& model) {
  view.sequence = std::min(view.sequence, model.sequences.size() - 1);
  view.head = std::min(view.head, model.n_heads - 1);
  if (!core::editing::find_matrix(model, view.edited))
    view.edited = {core::editing::MatrixName::embeddings, view.sequence};
  if (view.edited.name == core::editing::MatrixName::embeddings) view.edited.sequence = view.sequence;
  const core::attention::SharedMatrix& edited = *core::editing::find_matrix(model, view.edited);
  if (view.cursor && (view.cursor->row >= edited.n_rows() || view.cursor->column >= edited.n_cols()))
    view.cursor.reset();
  const auto exists = [&model](const std::optional<CellRef>& cell) {
    if (!cell) return true;
    const auto& stage = core::attention::info(cell->stage);
    const core::attention::StageShape shape = core::attention::shape_of(model, cell->stage);
    return stage.present(model) && cell->head < model.n_heads && cell->row < shape.n_rows &&
           cell->column < shape.n_cols;
  };
  if (!exists(view.pinned)) release(view);
  std::erase_if(view.trail, [&](const CellRef& cell) { return !exists(cell); });
  if (!exists(view.hovered)) view.hovered.reset();
  TokensLook& look = view.tokens;
  for (auto* token : {&look.pinned_query, &look.hovered_query})
    if (*token && **token >= model.n_tokens()) token->reset();
  if (look.hovered_key && *look.hovered_key >= model.n_keys()) look.hovered_key.reset();
  if (view.hovered_head && *view.hovered_head >= model.n_heads) view.hovered_head.reset();
  std::erase_if(look.silent_heads, [&model](std::size_t h) { return h >= model.n_heads; });
  if (!core::attention::info(view.heads_stage).present(model)) view.heads_stage = Stage::weights;
}

core::editing::MatrixPlace edited_place(const View& view, const core::attention::Model& model) {
  const core::editing::MatrixPlace place{view.edited.name, view.sequence};
  if (core::editing::find_matrix(model, place)) return place;
  return {core::editing::MatrixName::embeddings, view.sequence};
}

}  // namespace app
