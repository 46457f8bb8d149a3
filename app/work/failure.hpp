#pragma once

#include <string>

namespace app {

/// What the exception that is being handled says, in one line; what was to be had is named where the
/// exception does not. To be called in a handler.
std::string failure_text(const std::string& what);

}  // namespace app
