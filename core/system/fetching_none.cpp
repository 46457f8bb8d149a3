// All files are on this computer.
#include "core/system/fetching.hpp"

namespace core::system {

void require_here(const std::filesystem::path&) {}

}  // namespace core::system
