#pragma once

#include "core/base/error.hpp"

namespace core {

/// A file names another that does not lie beside it, which is opened only when a person says so.
class Outside : public Error {
 public:
  using Error::Error;
};

/// Whether a file may name others that do not lie beside it.
enum class Elsewhere { refused, allowed };

}  // namespace core
