#pragma once

#include <dlfcn.h>
#include <link.h>

#include <string>
#include <vector>

namespace support {

/// Keeps loaded libraries in memory after the last window, because a leak checker can only name those.
inline void keep_drivers_loaded() {
  std::vector<std::string> names;
  dl_iterate_phdr(
      [](dl_phdr_info* module, std::size_t, void* list) {
        static_cast<std::vector<std::string>*>(list)->emplace_back(module->dlpi_name);
        return 0;
      },
      &names);
  for (const std::string& name : names) dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

}  // namespace support
