#pragma once

#include <imgui.h>
#include <array>
#include <optional>

#include "app/ui/frame.hpp"
#include "core/graph/explain.hpp"

namespace app::panels {

/// Over the maps of the strip: the row of the newest token is lit, what is not computed when it is decoded is
/// covered, and of what a cache keeps nothing but later rows. Marks "decode/new/<stage>".
void draw_decoding_marks(const Frame& frame);

/// Which token is decoded and what is kept for it, with buttons, on one line. The height is that of
/// decoding_bar_height.
void draw_decoding_bar(const Frame& frame);
float decoding_bar_height(const Frame& frame);

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

/// The flight under way, over whatever maps are on the screen: the numbers of one step on their way, and the
/// cell that they make. Asks for the next moment of it when it runs.
///
/// Marks "flight/number/<k>" and "flight/target".
void draw_animation(const Frame& frame);

/// What the step under way does, in words: "Scaled → Masked", or "".
std::string flight_words(const Frame& frame);

/// Buttons for the flight under way, on one line: back, play or stop, on, speed, close. The height is that of
/// animation_bar_height.
void draw_animation_bar(const Frame& frame);
float animation_bar_height(const Frame& frame);

}  // namespace app::panels
