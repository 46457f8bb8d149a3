// libFuzzer's entry point for one target, named by the build.
#include <cstdint>

#include "tests/fuzz/targets.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::Target target = fuzz::target_called(TARGET);
  target.run({reinterpret_cast<const char*>(data), size});
  return 0;
}
