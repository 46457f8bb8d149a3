#pragma once

#include <stdexcept>
#include <string>

namespace core {

/// Something that the user gave cannot be used; what() is one line that names the place and what was
/// expected.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace core
