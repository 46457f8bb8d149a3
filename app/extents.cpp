#include "app/extents.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace app {

Extent extent_of(const arma::mat& numbers) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Extent e{infinity, -infinity};
  for (const double v : numbers) {
    if (!std::isfinite(v)) continue;
    e.smallest = std::min(e.smallest, v);
    e.largest = std::max(e.largest, v);
  }
  return e.smallest <= e.largest ? e : Extent{};
}

const Extent& Extents::of(const core::attention::Trace& trace, std::uint64_t version, core::attention::Stage stage,
                          std::size_t head) {
  if (version != version_) known_.clear();
  version_ = version;
  const core::attention::StageInfo& row = core::attention::info(stage);
  const auto [it, is_new] = known_.try_emplace({stage, row.per_head ? head : 0});
  if (is_new) it->second = extent_of(row.matrix(trace, head));
  return it->second;
}

}  // namespace app
