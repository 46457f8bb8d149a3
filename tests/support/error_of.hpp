#pragma once

#include <string>

#include "core/base/error.hpp"

namespace support {

/// Returns the message of the core::Error that the action throws, or "no error".
template <class Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const core::Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace support
