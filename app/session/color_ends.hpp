#pragma once

#include <functional>

#include "app/session/color_choice.hpp"
#include "app/session/extents.hpp"
#include "core/graph/model.hpp"
#include "core/graph/trace.hpp"
#include "core/out/figure.hpp"

namespace app {

/// The extent of one matrix of a trace.
using ExtentOf = std::function<Extent(core::attention::Stage stage, std::size_t head)>;

/// The ends of the colors of a matrix, as they were chosen: locked, typed, fixed, or following the numbers.
Ends color_ends(const ColorChoice& chosen, const core::attention::Model& model, const ExtentOf& extent,
                core::attention::Stage stage, std::size_t head);

/// Draws the figure in these colors; what the options say of colors does not count.
core::figures::DisplayList colored_figure(const core::attention::Model& model,
                                          const core::attention::Trace& trace,
                                          core::figures::FigureOptions options, const ColorChoice& chosen);

}  // namespace app
