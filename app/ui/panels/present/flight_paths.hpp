#pragma once

#include <imgui.h>

#include <array>
#include <optional>

#include "app/ui/frame.hpp"
#include "core/graph/explain.hpp"

namespace app::panels {

/// Two curves that meet without a kink: from a cell up and over to a gap between rows, along it into the
/// target.
struct FlightPath {
  std::array<ImVec2, 7> points;  ///< start, two controls, meeting point, two controls, end
  /// A point of it; t runs from 0 to 1, half of it along each curve.
  ImVec2 at(float t) const;
};

/// Where a cell stands on the screen, if its stage is there.
struct CellPlace {
  ImVec2 min, max;
};
std::optional<CellPlace> place_of(const Frame& frame, const core::explain::Place& place);

/// The path from one cell to another; k of n parts the lines of several numbers.
FlightPath path_between(const Frame& frame, const CellPlace& from, const CellPlace& to, std::size_t k,
                        std::size_t n);

}  // namespace app::panels
