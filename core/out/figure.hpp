#pragma once

#include <cstddef>
#include <functional>
#include <optional>

#include "core/base/color.hpp"
#include "core/graph/model.hpp"
#include "core/graph/stages.hpp"
#include "core/graph/trace.hpp"
#include "core/out/drawing.hpp"
#include "core/out/tables.hpp"

namespace core::figures {

/// Ends of a color range; logarithmic from the size `least` on if that is positive.
struct ColorRange {
  double low = 0, high = 1, least = 0;
};

/// Content and appearance of a figure.
struct FigureOptions {
  /// One stage, or all stages of one head in the order of the computation.
  std::optional<attention::Stage> stage = attention::Stage::weights;
  std::optional<std::size_t> head = 0;  ///< nullopt: all heads side by side, with a common color range
  std::size_t sequence = 0;             ///< the one that the trace was computed from
  bool dark = false;
  bool numbers = true;  ///< in cells that are large enough
  color::ColorMap sequential = color::ColorMap::weights, diverging = color::ColorMap::values;
  /// Color range of one matrix. By default it is fixed for weights and masks, and for other stages symmetric
  /// around 0 up to the largest finite number.
  std::function<ColorRange(attention::Stage stage, std::size_t head)> range = {};
  /// Gradients, which take the place of the numbers of all stages but the mask, each with its own range.
  std::optional<attention::Trace> gradient = {};
};

/// Returns a figure of a stage or of the whole computation, for print: tokens on the axes, formula, shape,
/// color bar, and a legend of its marks.
///
/// Throws core::Error when the model has no such stage or head.
DisplayList figure(const attention::Model& model, const attention::Trace& trace,
                   const FigureOptions& options);

/// Returns a figure of a matrix of signed shares, −1 to 1, with its labels.
DisplayList figure(const formats::LabeledMatrix& matrix, const std::string& title, bool dark = false);

}  // namespace core::figures
