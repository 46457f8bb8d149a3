#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fuzz {

/// Something that takes bytes of strangers, and bytes that it accepts, to begin with.
struct Target {
  const char* name;
  void (*run)(
      std::string_view bytes);  ///< throws nothing, whatever the bytes are; ends the program when wrong
  std::vector<std::string> (*seeds)();
};

/// Every reader, the session, pasted text, the unpickler and the small languages that people type.
std::span<const Target> targets();

}  // namespace fuzz
