#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <utility>

#include "core/base/color.hpp"
#include "core/graph/stages.hpp"

namespace app {

/// Whose numbers set the ends of the colors of signed stages: each matrix its own, one range for all heads
/// of a stage, one for every stage and head, or what was typed. Weights and masks have fixed ends, unless
/// some were typed.
enum class RangeRule { matrix, stage, all_heads, typed };

/// The two ends of a range of colors.
struct Ends {
  double low = 0, high = 1;
  double least = 0;  ///< when positive, the range is logarithmic from this size on
  friend bool operator==(const Ends&, const Ends&) = default;
};

/// How numbers become colors; none of it changes a number.
struct ColorChoice {
  RangeRule range = RangeRule::matrix;
  Ends typed_values{-1, 1}, typed_weights{0, 1};
  bool logarithmic = false;
  /// The ends as they were when they were locked, by stage and head; nothing: they follow the numbers.
  std::optional<std::map<std::pair<core::attention::Stage, std::size_t>, Ends>> locked;
  core::color::ColorMap sequential = core::color::ColorMap::weights,
                        diverging = core::color::ColorMap::values;
  friend bool operator==(const ColorChoice&, const ColorChoice&) = default;
};

}  // namespace app
