#pragma once

#include <string>

#include "app/ui/frame.hpp"
#include "core/graph/explain.hpp"

namespace app::widgets {

/// Draws an operand at the right end of a column that begins at left_middle; returns where the next begins.
///
/// One that stands somewhere is a link of that name: pressing it pins its cell, or puts the edit cursor on a
/// learned number.
float draw_operand(const Frame& frame, const std::string& name, const core::explain::Operand& operand,
                   ImVec2 left_middle, float width);

}  // namespace app::widgets
