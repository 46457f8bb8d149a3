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

/// The heads in the order of the view of heads.
std::vector<std::size_t> sorted_heads(const Frame& frame);

/// One stage of all heads at once, as small multiples.
void draw_heads(const Frame& frame);

}  // namespace app::panels
