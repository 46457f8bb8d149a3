#pragma once

#include <optional>

#include "core/graph/address.hpp"

namespace app {

/// The numbers of the pinned cell on the way from what they are made of to their place, stage after stage.
struct Flight {
  core::explain::CellAddress cell;
  double at = 0;     ///< how many of its steps have been flown, and how much of the next
  bool runs = true;  ///< else it stands still
  friend bool operator==(const Flight&, const Flight&) = default;
};

/// What is done for an audience.
struct Presenting {
  bool on = false;           ///< one stage and what it is made of fill the window
  bool full_screen = false;  ///< the window fills the screen
  std::optional<Flight> flight;
  friend bool operator==(const Presenting&, const Presenting&) = default;
};

}  // namespace app
