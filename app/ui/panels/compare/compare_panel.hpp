#pragma once

#include <optional>
#include <utility>

#include "app/ui/frame.hpp"
#include "app/ui/widgets/drawing.hpp"

namespace app::panels {

/// Draws A, B and their difference side by side, stage by stage; without an A, the ways to choose one.
void draw_compare(const Frame& frame);

/// Draws the ways to choose an A: snapshots and files, and experiments that change one thing.
void draw_references(Pen& pen);

/// Draws the first stage that differs, then the distance of every stage of A from B's; a click goes there.
void draw_compare_list(const Frame& frame);

/// Returns A's and B's numbers in a cell, or nothing while they are not known or if they cannot be compared.
std::optional<std::pair<double, double>> compared_numbers(const Frame& frame, const CellRef& cell);

/// Formats a distance or a difference of the comparison: "0.032134", "1.2e−07", "∞".
std::string compared_number(double value);

/// Returns "head 1: journey → Your", or "journey, column 1" for a stage without heads whose columns are no
/// tokens; shortens long names with ….
std::string compared_cell(const Frame& frame, const CellRef& cell);

/// Draws the dialog that assigns tensors to stages by hand, and selects their layout and layer.
void draw_match_dialog(const Frame& frame);

}  // namespace app::panels
