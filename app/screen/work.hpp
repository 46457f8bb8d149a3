#pragma once

#include <cstdint>

namespace app::render {

/// What was done since the beginning.
struct Work {
  std::uint64_t draws = 0, uploads = 0;
  friend bool operator==(const Work&, const Work&) = default;
};

}  // namespace app::render
