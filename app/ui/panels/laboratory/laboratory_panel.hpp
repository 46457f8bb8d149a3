#pragma once

#include <imgui.h>

#include "app/ui/frame.hpp"

namespace app::panels {

/// How far the mean is from the weights after N masks, on logarithmic axes; a click chooses N.
void draw_laboratory_curve(const Frame& frame, ImVec2 at, ImVec2 size);

/// Of how many masks draw_row_sums() draws a tick: all n_masks, or fewer where there are many rows.
std::size_t drawn_ticks(const Laboratory& laboratory, std::size_t n_masks);

/// A tick for each mask's sum of each row, and the mean; rows stand at the given pitch.
void draw_row_sums(const Frame& frame, ImVec2 at, ImVec2 size, std::size_t n_masks);

/// The dropout laboratory: one mask, the mean over many, how fast it settles, and ten ones.
void draw_laboratory(const Frame& frame);

}  // namespace app::panels
