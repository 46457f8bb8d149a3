#pragma once

#include <filesystem>
#include <string>

#include "app/session/view.hpp"

namespace app {

/// Reads a directory for the file browser, folders first; an empty path is the current directory.
///
/// A directory that cannot be read gives an empty list and says why in Browser::error.
Browser browse(const std::filesystem::path& directory, std::string name);

}  // namespace app
