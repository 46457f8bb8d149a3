#pragma once

#include <optional>

#include "app/ui/frame.hpp"
#include "core/base/positions.hpp"

namespace app::panels {

/// A pair of columns of the query and the key that are pictured.
struct TurningPair {
  std::size_t index = 0;
  core::positions::RotaryPair now;
  double longest = 1;     ///< the length of an arrow that reaches the rim
  double most_share = 1;  ///< what the bars of all pairs end at
  bool is_held = false;   ///< one of its arrows is being moved
};

// At scale 1: a pair's column, and what lies between two.
constexpr float pair_width = 182, pair_gap = 24;

/// How high a pair is, in pixels.
float pair_height(const Frame& frame);

/// An arrow that was moved: the two numbers of its pair before the turn.
struct MovedArrow {
  bool of_key = false;
  std::size_t pair = 0;
  core::positions::Arrow numbers;
  bool is_held = true;  ///< until it is let go
};

/// A pair as two arrows on a circle, white of the query and pink of the key, with their turns as arcs, the
/// angle between them and the share in the score; and the arrow whose tip the mouse holds or has let go.
std::optional<MovedArrow> draw_turning_circle(const Frame& frame, const TurningPair& pair, ImVec2 at);

}  // namespace app::panels
