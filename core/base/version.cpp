#include "core/base/version.hpp"

namespace core {

const char* version() {
  return ATTNSCOPE_VERSION;
}

}  // namespace core
