#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

/// Every head of every layer of a whole model as a small map of its weights, with what each layer would
/// guess.
void draw_layers(const Frame& frame);

}  // namespace app::panels
