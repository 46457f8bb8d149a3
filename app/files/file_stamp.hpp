#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace app {

/// What changes when somebody writes a file: its length, time and place on the disk; "" when there is none.
std::string file_stamp(const std::filesystem::path& path);

/// The path from the root, so that it means the same to other windows; as it is where there is no current
/// folder.
std::filesystem::path from_root(const std::filesystem::path& path);

/// The same of a file that is there after this program too; none of a pipe that it was given, whatever its
/// name.
std::optional<std::filesystem::path> lasting_path(const std::filesystem::path& path);

}  // namespace app
