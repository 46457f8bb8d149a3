#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "core/graph/stages.hpp"

namespace app {

/// The smallest and the largest finite number of a matrix; both 0 when it has none.
struct Extent {
  double smallest = 0, largest = 0;
  double least = 0;  ///< the smallest size of those that are not 0; 0 when there is none
};

/// How many cells a range of colors does not show as they are.
struct Beyond {
  std::size_t below = 0, above = 0;  ///< beyond its ends
  std::size_t small = 0,
              zero = 0;  ///< of a logarithmic range: nearer to 0 than its least size, and exactly 0
};
/// A range of colors: from low to high, logarithmic from the least size on where that is not 0.
struct Range {
  double low = 0, high = 0, least = 0;
  friend bool operator==(const Range&, const Range&) = default;
};
Beyond beyond(const arma::mat& numbers, const Range& range);

Extent extent_of(const arma::mat& numbers);

/// Extents of stages, each worked out once for a version of the trace.
class Extents {
 public:
  const Extent& of(const core::attention::Trace& trace, std::uint64_t version, core::attention::Stage stage,
                   std::size_t head);
  /// Remembers one that was worked out elsewhere.
  const Extent& remember(std::uint64_t version, core::attention::Stage stage, std::size_t head,
                         const Extent& extent);

  /// That of the latest version for which it was worked out, or an empty one.
  const Extent& last(core::attention::Stage stage, std::size_t head) const;

  /// The cells beyond a range; counted anew only when the range is another one.
  const Beyond& outside(const core::attention::Trace& trace, std::uint64_t version,
                        core::attention::Stage stage, std::size_t head, const Range& range);

 private:
  struct Counted {
    Range range;
    Beyond cells;
  };
  void start_with(std::uint64_t version);

  std::uint64_t version_ = 0;
  std::map<std::pair<core::attention::Stage, std::size_t>, Extent> known_, last_;
  const Extent nothing_;
  std::map<std::pair<core::attention::Stage, std::size_t>, Counted> counted_;
};

}  // namespace app
