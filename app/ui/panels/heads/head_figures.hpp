#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "app/ui/frame.hpp"

namespace app::panels {

/// The facts of every head of the shown sequence.
const std::vector<core::attention::HeadFacts>& head_facts(const Frame& frame);

/// "0.47 bit", "0.87", or "–" for a head without that figure; a mean weight has digits enough to tell an even
/// share of so many tokens from half as much.
std::string figure_text(core::attention::HeadFigure figure, const std::optional<double>& value,
                        std::size_t n_tokens);

/// The largest that a figure can be.
double figure_top(const Frame& frame, core::attention::HeadFigure figure);

/// What a figure is, with its ends: "mean entropy of the rows of weights, 0 to 4 bit".
std::string figure_words(const Frame& frame, core::attention::HeadFigure figure);

/// The heads in the order of the view of heads.
std::vector<std::size_t> sorted_heads(const Frame& frame);

}  // namespace app::panels
