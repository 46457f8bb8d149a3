#pragma once

#include <string>
#include <vector>

#include "tests/rules/source_tree.hpp"

namespace tests::rules {

/// The .cpp files that no CMakeLists.txt of their folder, or of one above, names: they would never be
/// compiled.
std::vector<std::string> unlisted_sources(const std::vector<File>& sources, const std::vector<File>& lists);

/// The files of more than max_lines lines, as "path: n lines".
std::vector<std::string> longer_than(const std::vector<File>& files, std::size_t max_lines);

}  // namespace tests::rules
