#pragma once

#include <string>

#include "app/ui/frame.hpp"

namespace app::panels {

/// What was done to a search field in this frame.
struct Searched {
  std::string text;
  int moved = 0;  ///< lines down, by the arrow keys
};

/// A field for letters to be found, which takes the keyboard whenever nothing else has it; what stands in it
/// is Forms::search. Marked under that name.
Searched search_field(const Frame& frame, const char* name, const char* hint, float width);

}  // namespace app::panels
