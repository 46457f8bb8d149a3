// What libFuzzer calls: one target, whose name the build gives.
#include <cstdint>
#include <cstdlib>

#include "tests/fuzz/targets.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  for (const fuzz::Target& target : fuzz::targets()) {
    if (target.name != std::string_view(TARGET)) continue;
    target.run({reinterpret_cast<const char*>(data), size});
    return 0;
  }
  std::abort();
}
