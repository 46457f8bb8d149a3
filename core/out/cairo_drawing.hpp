#pragma once

#include "core/out/display_list.hpp"

struct _cairo;

namespace core::figures {

/// Draws a figure on whatever cairo draws on, each length scale times as long.
///
/// Throws core::Error when cairo cannot draw it.
void draw_on(_cairo* c, const DisplayList& figure, double scale);

}  // namespace core::figures
