#include "app/session/pinning.hpp"

#include <utility>

namespace app {
namespace {

void show(LookedAt& view, std::optional<CellRef> cell) {
  view.selection.pinned = std::move(cell);
  view.selection.unfolded.reset();
  if (view.selection.pinned && core::attention::info(view.selection.pinned->stage).per_head)
    view.look.head = view.selection.pinned->head;
}

}  // namespace

void pin(View& view, const CellRef& cell) {
  const bool again = view.selection.pinned == cell;
  view.selection.trail.clear();
  show(view, again ? std::nullopt : std::optional(cell));
}

void follow(View& view, const CellRef& cell) {
  if (view.selection.pinned == cell) return;
  if (view.selection.pinned) view.selection.trail.push_back(*view.selection.pinned);
  show(view, cell);
}

void go_back(View& view) {
  if (view.selection.trail.empty()) return;
  const CellRef last = view.selection.trail.back();
  view.selection.trail.pop_back();
  show(view, last);
}

bool can_be_typed_over(Stage stage) {
  return stage != Stage::embeddings && stage != Stage::mask;
}

std::optional<core::editing::SwitchMaskCell> mask_switch(const std::optional<CellRef>& cell,
                                                         const core::attention::Trace& trace) {
  if (!cell || core::attention::info(cell->stage).columns != core::attention::Columns::tokens)
    return std::nullopt;
  if (cell->row >= trace.mask.n_rows() || cell->column >= trace.mask.n_cols())
    return std::nullopt;  // of another model
  const bool visible = trace.mask(cell->row, cell->column) != 0;
  return core::editing::SwitchMaskCell{cell->row, cell->column, !visible};
}

bool is_pointing(const Look& look, const Selection& selection) {
  return selection.hovered || selection.hovered_head || look.tokens.hovered_query || look.tokens.hovered_key;
}

void stop_pointing(View& view) {
  view.selection.hovered.reset();
  view.selection.hovered_head.reset();
  view.look.tokens.hovered_query.reset();
  view.look.tokens.hovered_key.reset();
}

void pin_query(View& view, std::size_t query) {
  auto& pinned = view.look.tokens.pinned_query;
  pinned = pinned == query ? std::nullopt : std::optional(query);
}

void release(LookedAt& view) {
  view.selection.trail.clear();
  show(view, std::nullopt);
}

}  // namespace app
