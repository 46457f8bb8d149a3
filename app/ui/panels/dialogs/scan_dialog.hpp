#pragma once

#include "app/ui/frame.hpp"

namespace app::panels {

/// Chooses the file of texts, and a folder beside it.
void choose_texts(const Frame& frame, const std::string& texts);

/// Draws the contents of Dialog::scan: a file of texts, and the heads over them as a table and a plot of two
/// measures, or the examples of one head. Landmarks "scan/…".
void draw_scan_dialog(const Frame& frame);

}  // namespace app::panels
