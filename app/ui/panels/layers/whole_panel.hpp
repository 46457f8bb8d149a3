#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

/// Left of the layers: the model's sizes, the text that it reads, the layer that is looked at, what was
/// edited.
void draw_whole(const Frame& frame);

}  // namespace app::panels
