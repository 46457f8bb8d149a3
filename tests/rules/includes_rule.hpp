#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/rules/source_tree.hpp"

namespace tests::rules {

/// Why a file may not have this include, or nothing when it may.
std::optional<std::string> why_forbidden(const std::string& file, const Include& include);

/// Every forbidden include as "file:line: includes x: why".
std::vector<std::string> forbidden_includes(const std::vector<File>& files);

/// What is wrong with how a library that belongs into one translation unit is included, a line for each
/// mistake; the folder tests/support is free to include it too.
std::vector<std::string> misplaced_library(const std::vector<File>& files, const std::string& library);

}  // namespace tests::rules
