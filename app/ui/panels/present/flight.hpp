#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

/// The flight under way, over whatever maps are on the screen: the numbers of one step on their way, and the
/// cell that they make. Asks for the next moment of it when it runs.
///
/// Marks "flight/number/<k>" and "flight/target".
void draw_flight(const Frame& frame);

/// What the step under way does, in words: "Scaled → Masked", or "".
std::string flight_words(const Frame& frame);

/// Buttons for the flight under way, on one line: back, play or stop, on, speed, close. The height is that of
/// flight_bar_height.
void draw_flight_bar(const Frame& frame);
float flight_bar_height(const Frame& frame);

}  // namespace app::panels
