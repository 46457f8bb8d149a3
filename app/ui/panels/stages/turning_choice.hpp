#pragma once

#include "app/ui/frame.hpp"
#include "app/ui/panels/stages/turning_circle.hpp"
#include "core/base/positions.hpp"

namespace app::panels {

/// The chosen query and key of a head as they are before they turn, and where.
struct TurningChoice {
  const core::positions::Rotary* rotary = nullptr;
  std::size_t head = 0, query = 0, key = 0, n_queries = 0, n_keys = 0;
  Stage query_stage = Stage::queries, key_stage = Stage::keys;
  arma::rowvec query_row, key_row;  ///< with what a held arrow stands for
  std::int64_t query_at = 0, key_at = 0;
  core::positions::RotaryDot meet(double query_place, double key_place) const {
    return core::positions::rotary_dot(*rotary, query_row, key_row, query_place, key_place);
  }
};

/// The row and the column of the pinned cell, else the last query and the first key.
TurningChoice turning_choice(const Frame& frame);

/// A line in which both are chosen and put back to where their tokens stand.
void draw_turning_choice(const Frame& frame, const TurningChoice& choice, ImVec2 at, float width);

}  // namespace app::panels
