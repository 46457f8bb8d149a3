#include <algorithm>
#include <utility>

#include "core/editing/edit_cases.hpp"
#include "core/graph/visible.hpp"

namespace core::editing::cases {
namespace {

using attention::Mask;
using attention::MaskCell;

/// Sets a rule of the mask. What does not fit is found by check(); until then cells are not looked at.
template <class Value>
void set_rule(Model& model, Value Mask::*rule, Value value) {
  model.mask.*rule = std::move(value);
  if (const auto problem = attention::check(model)) refuse(problem->path, problem->message);
  drop_cells_that_follow_the_rule(model);
}

}  // namespace

void drop_cells_that_follow_the_rule(Model& model) {
  if (model.mask.cells.empty()) return;
  std::vector<attention::Sights> sequences;
  for (std::size_t s = 0; s < model.sequences.size(); ++s) sequences.emplace_back(model, s);
  std::erase_if(model.mask.cells, [&](const MaskCell& c) {
    return std::ranges::all_of(sequences, [&](const attention::Sights& sights) {
      return sights.by_rules(c.row, c.column).visible == c.visible;
    });
  });
}

void change(Model& model, const SetCausal& edit) {
  if (model.mask.causal == edit.causal) return;
  model.mask.causal = edit.causal;
  drop_cells_that_follow_the_rule(model);
}

void change(Model& model, const SetMaskAlignment& edit) {
  set_rule(model, &Mask::align, edit.value);
}

void change(Model& model, const SetMaskWindow& edit) {
  set_rule(model, &Mask::window, edit.value);
}

void change(Model& model, const SetMaskPrefix& edit) {
  set_rule(model, &Mask::prefix, edit.value);
}

void change(Model& model, const SetDocuments& edit) {
  set_rule(model, &Mask::documents, edit.value);
}

void change(Model& model, const SetHiddenKeys& edit) {
  auto keys = edit.value;
  for (auto& list : keys) {
    std::ranges::sort(list);
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  if (std::ranges::all_of(keys, [](const auto& list) { return list.empty(); })) keys.clear();
  set_rule(model, &Mask::hidden_keys, std::move(keys));
}

void change(Model& model, const SwitchMaskCell& edit) {
  require_index("mask", edit.row, model.n_tokens(), "rows");
  require_index("mask[" + std::to_string(edit.row) + "]", edit.column, model.n_keys(), "columns");
  const MaskCell cell{edit.row, edit.column, edit.visible};
  auto& cells = model.mask.cells;
  auto place = std::ranges::lower_bound(cells, cell.place(), {}, &MaskCell::place);
  if (place != cells.end() && place->place() == cell.place()) place = cells.erase(place);
  if (!attention::follows_rules(model, cell)) cells.insert(place, cell);
}

void change(Model& model, const ClearMaskCells&) {
  model.mask.cells.clear();
}

}  // namespace core::editing::cases
