#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/out/display_list.hpp"

namespace core::figures {

/// About how wide a text is in DejaVu Sans, or in its monospaced sister; a writer's own font may differ a
/// little.
double text_width(std::string_view text, double size, bool mono = false);
double text_width(const std::vector<Run>& runs);

/// The text, or its beginning and "…" where it is wider than the room.
std::string shortened(const std::string& text, double size, double room);

/// A token as it can be drawn: line feeds, tabs and other control characters by signs that stand for them.
std::string drawable(std::string_view token);

/// A formula as runs: "W_q" is a W with a lowered q.
std::vector<Run> formula_runs(std::string_view formula, double size, Rgb colour);

/// Every how many cells there is room for a label: 1, 2, 4, 8, …, as people count on.
std::size_t label_step(double cell, double room);

/// The end of a range as it stands beside a colour bar; a whole number perhaps without decimals.
std::string end_text(double value, bool whole_alone);

}  // namespace core::figures
