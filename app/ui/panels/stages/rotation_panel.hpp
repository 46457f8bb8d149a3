#pragma once

#include <functional>
#include <optional>

#include "app/ui/frame.hpp"
#include "core/base/positions.hpp"

namespace app::panels {

/// A score at every distance of query and key from 0 to `furthest`, with dots where tokens can stand and the
/// distance of now marked; a press goes to a distance, which is returned.
std::optional<double> draw_turning_curve(const Frame& frame, ImVec2 at, ImVec2 size, double furthest,
                                         double distance, const std::function<double(double)>& score);

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

/// The chosen query and key of a head as they are before they turn, and where.
struct TurningChoice {
  core::positions::Rotary rotary;
  std::size_t head = 0, query = 0, key = 0, n_queries = 0, n_keys = 0;
  Stage query_stage = Stage::queries, key_stage = Stage::keys;
  arma::rowvec query_row, key_row;  ///< with what a held arrow stands for
  std::int64_t query_at = 0, key_at = 0;
  core::positions::RotaryDot meet(double query_place, double key_place) const {
    return core::positions::rotary_dot(rotary, query_row, key_row, query_place, key_place);
  }
};

/// The row and the column of the pinned cell, else the last query and the first key.
TurningChoice turning_choice(const Frame& frame);

/// A line in which both are chosen and put back to where their tokens stand.
void draw_turning_choice(const Frame& frame, const TurningChoice& choice, ImVec2 at, float width);

/// What leads to the picture from the titles of the strip.
constexpr const char* turning_link = "as arrows";

/// Whether a stage shown alone has the picture below it: one that rotary positions made.
bool has_turning(const Frame& frame, Stage stage);

/// How high the picture is, in pixels.
float turning_height(const Frame& frame);

/// Rotary positions as a picture: the pairs of the pinned query and key as arrows that sliders turn, the
/// angles between them, their shares in the score, and the score at every distance.
///
/// An arrow that was dragged types its two numbers over, in one step of undo.
void draw_turning(const Frame& frame, ImVec2 at, float width);

}  // namespace app::panels
