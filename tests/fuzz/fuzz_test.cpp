// The fuzz targets without a fuzzer: their seeds, inputs that once failed, and some thousand mutations of
// the seeds.
#include <gtest/gtest.h>

#include <random>

#include "tests/fuzz/targets.hpp"
#include "tests/support/temporary_directory.hpp"

namespace fuzz {
namespace {

namespace fs = std::filesystem;

/// Returns a seed with a few bytes changed, removed, doubled or replaced by common mistakes.
std::string changed(std::string bytes, std::mt19937& random) {
  const auto below = [&](std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
  };
  for (std::size_t n = 1 + below(4); n > 0 && !bytes.empty(); --n) {
    const std::size_t at = below(bytes.size()),
                      count = 1 + below(std::min<std::size_t>(bytes.size() - at, 16));
    switch (below(6)) {
      case 0:
        bytes[at] = static_cast<char>(below(256));
        break;
      case 1:
        bytes.erase(at, count);
        break;
      case 2:
        bytes.insert(at, bytes.substr(at, count));
        break;
      case 3:
        bytes.resize(at);
        break;
      case 4:
        bytes.replace(at, count, std::string(count, below(2) == 0 ? '\xff' : '\0'));
        break;
      case 5:
        bytes[at] = "0129-+.,:;[]{}()\"'\\\n\t eEnf"[below(26)];
    }
  }
  return bytes;
}

class FuzzTarget : public testing::TestWithParam<Target> {};

TEST_P(FuzzTarget, EndsInALineWhateverTheBytes) {
  const Target& target = GetParam();
  target.run("");
  const fs::path found = fs::path(FOUND_INPUTS) / target.name;
  if (fs::exists(found))
    for (const auto& entry : fs::directory_iterator(found)) target.run(support::bytes_of(entry.path()));
  std::mt19937 random(1);
  for (const std::string& seed : target.seeds()) {
    target.run(seed);
    for (int k = 0; k < 200; ++k) target.run(changed(seed, random));
  }
}

INSTANTIATE_TEST_SUITE_P(All, FuzzTarget, testing::ValuesIn(targets()),
                         [](const auto& about) { return std::string(about.param.name); });

}  // namespace
}  // namespace fuzz
