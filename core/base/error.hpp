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

/// A file names another that does not lie beside it, which is opened only when a person says so.
class UntrustedPath : public Error {
 public:
  using Error::Error;
};

/// Whether a file may name others that do not lie beside it.
enum class UntrustedPaths { refused, allowed };

}  // namespace core
