#pragma once

#include <dlfcn.h>
#include <link.h>

#include <string>
#include <vector>

namespace support {

/// What is loaded now stays in memory after the last window: a leak checker can only name what is still
/// there.
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
