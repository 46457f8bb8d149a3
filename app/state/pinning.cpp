#include "app/state/pinning.hpp"

#include <utility>

namespace app {
namespace {

void show(View& view, std::optional<CellRef> cell) {
  view.pinned = std::move(cell);
  view.unfolded.reset();
  if (view.pinned && core::attention::info(view.pinned->stage).per_head) view.head = view.pinned->head;
}

}  // namespace

void pin(View& view, const CellRef& cell) {
  const bool again = view.pinned == cell;
  view.trail.clear();
  show(view, again ? std::nullopt : std::optional(cell));
}

void follow(View& view, const CellRef& cell) {
  if (view.pinned == cell) return;
  if (view.pinned) view.trail.push_back(*view.pinned);
  show(view, cell);
}

void go_back(View& view) {
  if (view.trail.empty()) return;
  const CellRef last = view.trail.back();
  view.trail.pop_back();
  show(view, last);
}

bool can_be_typed_over(Stage stage) { return stage != Stage::embeddings && stage != Stage::mask; }

std::optional<core::editing::SwitchMaskCell> mask_switch(const std::optional<CellRef>& cell, const core::attention::Trace& trace) {
  if (!cell || core::attention::info(cell->stage).columns != core::attention::Columns::tokens) return std::nullopt;
  if (cell->row >= trace.mask.n_rows() || cell->column >= trace.mask.n_cols()) return std::nullopt;  // of another model
  const bool visible = trace.mask(cell->row, cell->column) != 0;
  return core::editing::SwitchMaskCell{cell->row, cell->column, !visible};
}

bool is_pointing(const View& view) {
  return view.hovered || view.hovered_head || view.tokens.hovered_query || view.tokens.hovered_key;
}

void stop_pointing(View& view) {
  view.hovered.reset();
  view.hovered_head.reset();
  view.tokens.hovered_query.reset();
  view.tokens.hovered_key.reset();
}

void pin_query(View& view, std::size_t query) {
  auto& pinned = view.tokens.pinned_query;
  pinned = pinned == query ? std::nullopt : std::optional(query);
}

void release(View& view) {
  view.trail.clear();
  show(view, std::nullopt);
}

}  // namespace app
