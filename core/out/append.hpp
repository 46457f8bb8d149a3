#pragma once

#include "core/out/display_list.hpp"

namespace core::figures {

/// Puts all that another figure shows into this one, moved by so much; the size stays.
void append(DisplayList& figure, const DisplayList& part, Point by);

}  // namespace core::figures
