#pragma once

namespace core {

/// Returns the program's version, as "1.2.3".
const char* version();

}  // namespace core
