#pragma once

#include <cstddef>
#include <functional>
#include <optional>

#include "core/base/color.hpp"
#include "core/graph/model.hpp"
#include "core/graph/stages.hpp"
#include "core/graph/trace.hpp"
#include "core/out/drawing.hpp"

namespace core::figures {

/// The ends of a range of colors; logarithmic from the least size on when that is positive.
struct Range {
  double low = 0, high = 1, least = 0;
};

/// What a figure shows and how.
struct FigureOptions {
  /// One stage, or all stages of one head in the order of the computation.
  std::optional<attention::Stage> stage = attention::Stage::weights;
  std::optional<std::size_t> head = 0;  ///< nothing: all heads beside each other, in colors of one range
  std::size_t sequence = 0;             ///< the one that the trace was computed from
  bool dark = false;
  bool numbers = true;  ///< in cells that are large enough
  color::ColorMap sequential = color::ColorMap::weights, diverging = color::ColorMap::values;
  /// The range of one matrix. Without it, that of weights and masks is fixed, that of other stages symmetric
  /// around 0 as far as the numbers go.
  std::function<Range(attention::Stage stage, std::size_t head)> range = {};
};

/// A figure of a stage or of the whole computation, fit for a page: tokens on the axes, formula, shape,
/// color bar, and in words below what the marks in it mean.
///
/// Throws core::Error when the model has no such stage or head.
DisplayList figure(const attention::Model& model, const attention::Trace& trace,
                   const FigureOptions& options);

}  // namespace core::figures
