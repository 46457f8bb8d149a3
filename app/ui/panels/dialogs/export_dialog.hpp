#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

/// What stands inside the dialog that exports: what, in which form, where to, and what will be written; files
/// that are there are written over only when that was answered.
void draw_export_dialog(const Frame& frame);

}  // namespace app::panels
