#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

/// A sentence to be typed, what it is taken apart into, and the seed of its embeddings.
void draw_sentence_dialog(const Frame& frame);

}  // namespace app::panels
