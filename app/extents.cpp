#include "app/extents.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace app {

Extent extent_of(const arma::mat& numbers) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Extent e{infinity, -infinity, infinity};
  for (const double v : numbers) {
    if (!std::isfinite(v)) continue;
    e.smallest = std::min(e.smallest, v);
    e.largest = std::max(e.largest, v);
    if (v != 0) e.least = std::min(e.least, std::abs(v));
  }
  if (e.least == infinity) e.least = 0;
  return e.smallest <= e.largest ? e : Extent{};
}

Beyond beyond(const arma::mat& numbers, double low, double high, double least) {
  Beyond b;
  for (const double v : numbers) {
    b.below += v < low && v != -std::numeric_limits<double>::infinity();  // −∞ has a mark of its own
    b.above += v > high;
    b.zero += v == 0;
    b.small += v != 0 && std::abs(v) < least;
  }
  return b;
}

void Extents::start_with(std::uint64_t version) {
  if (version == version_) return;
  version_ = version;
  known_.merge(last_);  // what is known stays, what is not is taken from the versions before
  last_ = std::exchange(known_, {});
  counted_.clear();
}

const Beyond& Extents::outside(const core::attention::Trace& trace, std::uint64_t version,
                               core::attention::Stage stage, std::size_t head, double low, double high, double least) {
  start_with(version);
  const core::attention::StageInfo& row = core::attention::info(stage);
  const auto [it, is_new] = counted_.try_emplace({stage, row.per_head ? head : 0});
  Counted& c = it->second;
  if (is_new || c.low != low || c.high != high || c.least != least)
    c = {low, high, least, beyond(row.matrix(trace, head), low, high, least)};
  return c.cells;
}

const Extent& Extents::of(const core::attention::Trace& trace, std::uint64_t version, core::attention::Stage stage,
                          std::size_t head) {
  start_with(version);
  const core::attention::StageInfo& row = core::attention::info(stage);
  const auto [it, is_new] = known_.try_emplace({stage, row.per_head ? head : 0});
  if (is_new) it->second = extent_of(row.matrix(trace, head));
  return it->second;
}

const Extent& Extents::last(core::attention::Stage stage, std::size_t head) const {
  const std::pair key{stage, core::attention::info(stage).per_head ? head : 0};
  for (const auto* extents : {&known_, &last_})
    if (const auto it = extents->find(key); it != extents->end()) return it->second;
  return nothing_;
}

}  // namespace app
