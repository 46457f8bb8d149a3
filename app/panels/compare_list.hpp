#pragma once

#include "app/frame.hpp"

namespace app::panels {

/// The first stage that differs, then how far every stage of A is from B's; a click on one leads there.
void draw_compare_list(const Frame& frame);

/// The traces of A and of B: tensors are B, any other reference is A.
const core::attention::Trace& trace_of_a(const Frame& frame);
const core::attention::Trace& trace_of_b(const Frame& frame);

/// A distance or a difference as the comparison writes it: "0.032134", "1.2e−07", "∞".
std::string compared_number(double value);

/// "head 1: journey → Your", or "journey, column 1" where the stage is not of tokens or of heads; names that
/// are long end in ….
std::string compared_cell(const Frame& frame, const CellRef& cell);

}  // namespace app::panels
