#include "core/graph/stage_source.hpp"

#include <algorithm>

namespace core::attention {

StageSource::StageSource(const Model& model, std::size_t sequence)
    : model_(model), sequence_(sequence), shown_(shown_stages(model)) {}

void StageSource::type_over(SharedMatrix& numbers, Stage stage, std::size_t head) const {
  const auto& cells = model_.given.cells;
  const auto is_here = [&](const GivenPlace& p) {
    return p.stage == stage && p.sequence == sequence_ && p.head == head;
  };
  auto cell =
      std::ranges::lower_bound(cells, GivenPlace{stage, sequence_, head, 0, 0}, {}, &GivenCell::place);
  for (; cell != cells.end() && is_here(cell->place); ++cell)
    numbers.edit()(cell->place.row, cell->place.column) = cell->value;
}

}  // namespace core::attention
