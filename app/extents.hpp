#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "core/attention/stages.hpp"

namespace app {

/// The smallest and the largest finite number of a matrix; both 0 when it has none.
struct Extent {
  double smallest = 0, largest = 0;
};

Extent extent_of(const arma::mat& numbers);

/// Extents of stages, each worked out once for a version of the trace.
class Extents {
 public:
  const Extent& of(const core::attention::Trace& trace, std::uint64_t version, core::attention::Stage stage, std::size_t head);

 private:
  std::uint64_t version_ = 0;
  std::map<std::pair<core::attention::Stage, std::size_t>, Extent> known_;
};

}  // namespace app
