#pragma once

#include <string>

namespace app {

/// Why something has not given what it was to give.
struct Failure {
  std::string words;        ///< one line
  bool is_stopped = false;  ///< it was asked to stop
  bool lacks_memory = false;
  bool is_outside = false;  ///< a file names others elsewhere
};

/// What the exception that is being handled says; what was to be had is named where the exception does not.
/// To be called in a handler.
Failure failure_of(const std::string& what = "");

}  // namespace app
