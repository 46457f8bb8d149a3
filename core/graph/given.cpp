#include "core/graph/given.hpp"

#include <algorithm>

#include "core/base/find.hpp"

namespace core::attention {

bool operator==(const GivenCell& a, const GivenCell& b) {
  return a.place == b.place && same_bits(a.value, b.value);
}

const GivenStage* Given::find(Stage stage) const {
  return find_by(stages, stage, &GivenStage::stage);
}

const GivenCell* Given::find(const GivenCellAddress& place) const {
  const auto found = std::ranges::lower_bound(cells, place, {}, &GivenCell::place);
  return found == cells.end() || found->place != place ? nullptr : &*found;
}

bool can_be_given(Stage stage) {
  switch (stage) {
    case Stage::queries:
    case Stage::keys:
    case Stage::values:
    case Stage::scores:
    case Stage::scaled_scores:
    case Stage::masked_scores:
    case Stage::weights:
    case Stage::dropout_mask:
      return true;
    default:
      return false;
  }
}

}  // namespace core::attention
