#pragma once

#include <cstddef>
#include <filesystem>
#include <vector>

namespace app {

/// So many files are remembered, in memory and from one run to the next.
constexpr std::size_t most_recent = 10;

/// A list of recent files, newest first, with one more; each stands in it once.
std::vector<std::filesystem::path> with_recent(std::vector<std::filesystem::path> recent,
                                               const std::filesystem::path& file);

}  // namespace app
