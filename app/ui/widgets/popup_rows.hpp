#pragma once

#include "app/ui/frame.hpp"

namespace app::widgets {

/// The rows of a popup: labels at the left, controls beside them.
struct PopupRows {
  const Frame& frame;
  ImVec2 at;         ///< top left corner of the next row
  float label_room;  ///< from there to the controls, at scale 1
  /// Writes a label and puts the cursor where its control begins.
  void row(const char* words);
};

}  // namespace app::widgets
