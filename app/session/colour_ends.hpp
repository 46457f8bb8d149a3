#pragma once

#include <functional>

#include "app/session/colour_choice.hpp"
#include "app/session/extents.hpp"
#include "core/graph/model.hpp"
#include "core/graph/trace.hpp"
#include "core/out/figure.hpp"

namespace app {

/// The extent of one matrix of a trace.
using ExtentOf = std::function<Extent(core::attention::Stage stage, std::size_t head)>;

/// The ends of the colours of a matrix, as they were chosen: locked, typed, fixed, or following the numbers.
Ends colour_ends(const ColourChoice& chosen, const core::attention::Model& model, const ExtentOf& extent,
                 core::attention::Stage stage, std::size_t head);

/// Draws the figure in these colours; what the options say of colours does not count.
core::figures::DisplayList coloured_figure(const core::attention::Model& model,
                                           const core::attention::Trace& trace,
                                           core::figures::FigureOptions options, const ColourChoice& chosen);

}  // namespace app
