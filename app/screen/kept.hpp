#pragma once

#include <filesystem>
#include <string>
#include <string_view>

/// Short texts that survive the program: files or, in a page, the storage of the browser.
namespace app::platform {

/// Returns what was kept under a path; "" if nothing was, or if it cannot be read.
std::string read_kept(const std::filesystem::path& path);

/// Replaces what is kept under a path. Throws core::Error.
void write_kept(const std::filesystem::path& path, std::string_view text);

}  // namespace app::platform
