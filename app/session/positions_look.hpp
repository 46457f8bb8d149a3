#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace app {

/// An arrow of the picture of rotary positions that the mouse holds: two numbers of a pair before they turn.
struct HeldArrow {
  bool of_key = false;
  std::size_t pair = 0;
  double x = 0, y = 0;
  double longest = 1;  ///< the length that reached the rim when it was taken
  friend bool operator==(const HeldArrow&, const HeldArrow&) = default;
};

/// Where tokens stand, as far as that is looked at.
struct PositionsLook {
  std::optional<std::size_t> decoded;            ///< decoding is shown, and this is the newest token
  std::optional<std::int64_t> query_at, key_at;  ///< where the picture has moved query and key to
  std::optional<HeldArrow> held;
  friend bool operator==(const PositionsLook&, const PositionsLook&) = default;
};

}  // namespace app
