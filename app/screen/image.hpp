#pragma once

#include <cstdint>
#include <vector>

namespace app::platform {

/// Pixels, 4 bytes each (red, green, blue, alpha), top row first.
struct Image {
  int width = 0, height = 0;
  std::vector<std::uint8_t> rgba;
};

}  // namespace app::platform
