#pragma once

#include <cstddef>
#include <optional>
#include <utility>

#include "app/ui/frame.hpp"
#include "app/ui/widgets/drawing.hpp"

namespace app::panels {

/// A, B and their difference beside each other, a stage below the other; without an A, the ways to come to
/// one.
void draw_compare(const Frame& frame);

/// The ways to come to an A: snapshots and files, and experiments that change one thing.
void draw_references(Pen& pen);

/// The first stage that differs, then how far every stage of A is from B's; a click on one leads there.
void draw_compare_list(const Frame& frame);

/// A's and B's numbers in a cell, or nothing as long as they are not known or cannot be compared.
std::optional<std::pair<double, double>> compared_numbers(const Frame& frame, const CellRef& cell);

/// A distance or a difference as the comparison writes it: "0.032134", "1.2e−07", "∞".
std::string compared_number(double value);

/// "head 1: journey → Your", or "journey, column 1" where the stage is not of tokens or of heads; names that
/// are long end in ….
std::string compared_cell(const Frame& frame, const CellRef& cell);

/// Which tensor is which stage, in which layout and of which layer, to be said by hand.
void draw_match_dialog(const Frame& frame);

}  // namespace app::panels
