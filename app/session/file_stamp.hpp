#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace app {

/// What changes when somebody writes a file: its length, times and place on the disk; "" when there is none.
///
/// The time of its change is among them, which nobody can set back as that of its contents.
std::string file_stamp(const std::filesystem::path& path);

/// The path from the root of a file that is there after this program too, so that it means the same to other
/// windows; as it is where there is no current folder. None of a pipe that the program was given.
std::optional<std::filesystem::path> lasting_path(const std::filesystem::path& path);

}  // namespace app
