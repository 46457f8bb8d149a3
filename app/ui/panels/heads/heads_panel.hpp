#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "app/ui/frame.hpp"

namespace app::panels {

/// Returns the facts of every head of the displayed sequence.
const std::vector<core::attention::HeadStatistics>& head_statistics(const Frame& frame);

/// Returns "0.47 bits", "0.87", or "–" for a head without that figure; a mean weight has enough digits to
/// tell 1 / n_tokens from half of it.
std::string figure_text(core::attention::HeadMetric figure, const std::optional<double>& value,
                        std::size_t n_tokens);

/// Returns the heads in the order of the Heads view.
std::vector<std::size_t> sorted_heads(const Frame& frame);

/// Draws one stage of all heads at once, as small multiples.
void draw_heads(const Frame& frame);

}  // namespace app::panels
