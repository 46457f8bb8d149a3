#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "app/session/pair.hpp"
#include "app/session/view.hpp"
#include "core/graph/trace.hpp"

namespace app {

constexpr double leg_seconds = 1.6;  ///< of one step of a flight at speed 1

/// The cells that a flight to a cell makes one after the other, the cell itself last; none for what is made
/// of nothing.
std::vector<CellRef> flown_cells(const core::attention::Model& model, const core::attention::Trace& trace,
                                 const CellRef& cell);

/// One step of the flight under way.
struct FlightLeg {
  std::size_t index = 0, count = 0;
  CellRef to;
  double share = 0;  ///< of it that is done, 0 … 1
};
/// Nothing where no flight to the pinned cell is under way; where it stands still between two steps, the one
/// that was flown last.
std::optional<FlightLeg> leg_under_way(const Shown& shown);

/// Begins a flight to the pinned cell, stops the one under way, or lets it go on; from its start when it had
/// arrived. n is the number of its steps.
void play_flight(View& view, std::size_t n);
/// Goes to the beginning of the step before (−1), or to the end of this one (+1), and stands still there.
void step_flight(View& view, int by, std::size_t n);
/// Goes on by so many steps; arrived, it stands still.
void advance_flight(View& view, double by, std::size_t n);

}  // namespace app
