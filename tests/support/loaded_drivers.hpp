#pragma once

namespace support {

/// What is loaded now stays in memory after the last window: a leak checker can only name what is still
/// there.
void keep_drivers_loaded();

}  // namespace support
