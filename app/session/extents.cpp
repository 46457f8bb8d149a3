#include "app/session/extents.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace app {

Extent extent_of(const arma::mat& numbers) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr arma::uword lanes =
      8;  // side by side and without branches, so that the compiler can do several at once
  std::array<double, lanes> smallest, largest, least;
  smallest.fill(infinity), largest.fill(-infinity), least.fill(infinity);
  const auto add = [&](arma::uword k, double v) {
    const double size = std::abs(v);
    const double low = size < infinity ? v : infinity, high = size < infinity ? v : -infinity,
                 from_zero = size > 0 ? size : infinity;
    smallest[k] = low < smallest[k] ? low : smallest[k];
    largest[k] = high > largest[k] ? high : largest[k];
    least[k] = from_zero < least[k] ? from_zero : least[k];
  };
  const double* v = numbers.memptr();
  arma::uword i = 0;
  for (; i + lanes <= numbers.n_elem; i += lanes)
    for (arma::uword k = 0; k < lanes; ++k) add(k, v[i + k]);
  for (; i < numbers.n_elem; ++i) add(i % lanes, v[i]);
  Extent e{*std::min_element(smallest.begin(), smallest.end()),
           *std::max_element(largest.begin(), largest.end()), *std::min_element(least.begin(), least.end())};
  if (e.least == infinity) e.least = 0;
  return e.smallest <= e.largest ? e : Extent{};
}

Beyond beyond(const arma::mat& numbers, const Range& range) {
  Beyond b;
  for (const double v : numbers) {
    b.below += v < range.low && v != -std::numeric_limits<double>::infinity();  // −∞ has a mark of its own
    b.above += v > range.high;
    b.zero += v == 0;
    b.small += v != 0 && std::abs(v) < range.least;
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
                               core::attention::Stage stage, std::size_t head, const Range& range) {
  start_with(version);
  const core::attention::StageInfo& row = core::attention::info(stage);
  const auto [it, is_new] = counted_.try_emplace({stage, row.per_head ? head : 0});
  Counted& c = it->second;
  if (is_new || c.range != range) c = {range, beyond(row.matrix(trace, head), range)};
  return c.cells;
}

const Extent& Extents::of(const core::attention::Trace& trace, std::uint64_t version,
                          core::attention::Stage stage, std::size_t head) {
  start_with(version);
  const core::attention::StageInfo& row = core::attention::info(stage);
  const auto [it, is_new] = known_.try_emplace({stage, row.per_head ? head : 0});
  if (is_new) it->second = extent_of(row.matrix(trace, head));
  return it->second;
}

const Extent& Extents::remember(std::uint64_t version, core::attention::Stage stage, std::size_t head,
                                const Extent& extent) {
  start_with(version);
  return known_[{stage, core::attention::info(stage).per_head ? head : 0}] = extent;
}

const Extent& Extents::last(core::attention::Stage stage, std::size_t head) const {
  const std::pair key{stage, core::attention::info(stage).per_head ? head : 0};
  for (const auto* extents : {&known_, &last_})
    if (const auto it = extents->find(key); it != extents->end()) return it->second;
  return nothing_;
}

}  // namespace app
