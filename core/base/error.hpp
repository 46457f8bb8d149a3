#pragma once

#include <stdexcept>
#include <string>

namespace core {

/// Unusable input from the user; what() is one line that names the place and what was expected.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A file names another outside its own folder, which is opened only if the user allows it.
class UntrustedPath : public Error {
 public:
  using Error::Error;
};

/// Whether a file may name others outside its own folder.
enum class UntrustedPaths { refused, allowed };

}  // namespace core
