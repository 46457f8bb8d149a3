#include "app/session/view_bounds.hpp"

#include <algorithm>

#include "app/session/decoding.hpp"
#include "app/session/pinning.hpp"

namespace app {

void keep_within(LookedAt& view, const core::attention::Model& model) {
  view.look.sequence = std::min(view.look.sequence, model.sequences.size() - 1);
  view.look.head = std::min(view.look.head, model.n_heads - 1);
  if (!core::editing::find_matrix(model, view.look.edited))
    view.look.edited = {core::editing::MatrixName::embeddings, view.look.sequence};
  view.look.edited = edited_place(view.look, model);
  const core::attention::SharedMatrix& edited = *core::editing::find_matrix(model, view.look.edited);
  if (view.selection.cursor &&
      (view.selection.cursor->row >= edited.n_rows() || view.selection.cursor->column >= edited.n_cols()))
    view.selection.cursor.reset();
  const auto exists = [&model](const std::optional<CellRef>& cell) {
    if (!cell) return true;
    const auto& stage = core::attention::info(cell->stage);
    const core::attention::StageShape shape = core::attention::shape_of(model, cell->stage);
    return stage.present(model) && cell->head < model.n_heads && cell->row < shape.n_rows &&
           cell->column < shape.n_cols;
  };
  if (!exists(view.selection.pinned)) release(view);
  std::erase_if(view.selection.trail, [&](const CellRef& cell) { return !exists(cell); });
  if (!exists(view.selection.hovered)) view.selection.hovered.reset();
  PositionsLook& positions = view.look.positions;
  if (positions.decoded && (*positions.decoded >= model.n_tokens() || !why_not_decoded(model).empty()))
    positions.decoded.reset();
  TokensLook& look = view.look.tokens;
  for (auto* token : {&look.pinned_query, &look.hovered_query})
    if (*token && **token >= model.n_tokens()) token->reset();
  if (look.hovered_key && *look.hovered_key >= model.n_keys()) look.hovered_key.reset();
  if (view.selection.hovered_head && *view.selection.hovered_head >= model.n_heads)
    view.selection.hovered_head.reset();
  std::erase_if(look.silent_heads, [&model](std::size_t h) { return h >= model.n_heads; });
  if (!core::attention::info(view.look.heads_stage).present(model)) view.look.heads_stage = Stage::weights;
}

core::editing::MatrixPlace edited_place(const Look& look, const core::attention::Model& model) {
  const auto place = core::attention::place_of(model, look.edited.name, look.sequence, look.head);
  if (core::editing::find_matrix(model, place)) return place;
  return {core::editing::MatrixName::embeddings, look.sequence};
}

}  // namespace app
