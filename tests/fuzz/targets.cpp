#include "tests/fuzz/targets.hpp"

#include <cstdlib>

namespace fuzz {

std::vector<Target> targets() {
  std::vector<Target> all;
  for (const auto family : {tensor_targets(), session_targets(), model_targets(), typed_targets()})
    all.insert(all.end(), family.begin(), family.end());
  return all;
}

Target target_called(std::string_view name) {
  for (const Target& target : targets())
    if (target.name == name) return target;
  std::abort();
}

}  // namespace fuzz
