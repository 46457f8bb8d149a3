#pragma once

#include <functional>
#include <optional>

#include "app/ui/frame.hpp"

namespace app::panels {

/// A score at every distance of query and key from 0 to `furthest`, with dots where tokens can stand and the
/// distance of now marked; a press goes to a distance, which is returned.
std::optional<double> draw_turning_curve(const Frame& frame, ImVec2 at, ImVec2 size, double furthest,
                                         double distance, const std::function<double(double)>& score);

}  // namespace app::panels
