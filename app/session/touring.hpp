#pragma once

#include <functional>
#include <span>

#include "app/session/view.hpp"
#include "core/graph/model.hpp"

namespace app {

/// One thing to do in the window, and whether it was done.
struct TourStep {
  const char* title;
  const char* words;
  const char* place;  ///< the landmark that it points at
  bool (*done)(const Selection& now, Dialog dialog, const core::attention::Model& model);
};
std::span<const TourStep> tour_steps();

/// Begins the tour, with the window as it needs it.
std::function<void(View&)> tour_from(const core::attention::Model& model);
/// Goes on to the next step, or ends the tour after the last.
void go_on_in_tour(View& view, const core::attention::Model& model);
/// Ends it; it is not offered again by itself.
void leave_tour(View& view);

}  // namespace app
