#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

/// Over the maps of the strip: the row of the newest token is lit, what is not computed when it is decoded is
/// covered, and of what a cache keeps nothing but later rows. Marks "decode/new/<stage>".
void draw_decoding_marks(const Frame& frame);

/// Which token is decoded and what is kept for it, with buttons, on one line. The height is that of
/// decoding_bar_height.
void draw_decoding_bar(const Frame& frame);
float decoding_bar_height(const Frame& frame);

}  // namespace app::panels
