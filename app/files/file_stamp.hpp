#pragma once

#include <filesystem>
#include <string>

namespace app {

/// What changes when somebody writes a file: its length, time and place on the disk; "" when there is none.
std::string file_stamp(const std::filesystem::path& path);

}  // namespace app
