#include "app/session/flights.hpp"

#include <algorithm>
#include <cmath>

#include "core/graph/explain.hpp"

namespace app {

std::vector<CellRef> flown_cells(const core::attention::Model& model, const core::attention::Trace& trace,
                                 const CellRef& cell) {
  std::vector<CellRef> cells = core::explain::worked_out(model, trace, cell);
  std::erase_if(cells, [&](const CellRef& c) { return core::explain::operands(model, trace, c).empty(); });
  return cells;
}

std::optional<FlightLeg> leg_under_way(const Shown& shown) {
  const auto& flight = shown.selection.presenting.flight;
  if (!flight || shown.selection.pinned != flight->cell) return std::nullopt;
  const auto cells = flown_cells(shown.model, shown.trace, flight->cell);
  if (cells.empty()) return std::nullopt;
  const auto n = static_cast<double>(cells.size());
  const double at = std::clamp(flight->at, 0.0, n);
  const bool whole = at > 0 && at == std::floor(at) && (!flight->runs || at == n);
  const auto index = static_cast<std::size_t>(whole ? at - 1 : std::min(std::floor(at), n - 1));
  return FlightLeg{index, cells.size(), cells[index], whole ? 1.0 : at - static_cast<double>(index)};
}

void play_flight(View& view, std::size_t n) {
  auto& flight = view.selection.presenting.flight;
  if (!view.selection.pinned) return flight.reset();
  if (!flight || flight->cell != *view.selection.pinned || flight->at >= static_cast<double>(n))
    flight = Flight{*view.selection.pinned, 0, true};
  else
    flight->runs = !flight->runs;
}

void step_flight(View& view, int by, std::size_t n) {
  auto& flight = view.selection.presenting.flight;
  if (!view.selection.pinned) return;
  if (!flight || flight->cell != *view.selection.pinned) flight = Flight{*view.selection.pinned, 0, false};
  constexpr double close = 1e-6;
  const double to = by < 0 ? std::ceil(flight->at - 1 - close) : std::floor(flight->at + 1 + close);
  flight->at = std::clamp(to, 0.0, static_cast<double>(n));
  flight->runs = false;
}

void advance_flight(View& view, double by, std::size_t n) {
  auto& flight = view.selection.presenting.flight;
  if (!flight || !flight->runs) return;
  flight->at = std::min(flight->at + by, static_cast<double>(n));
  if (flight->at >= static_cast<double>(n)) flight->runs = false;
}

}  // namespace app
