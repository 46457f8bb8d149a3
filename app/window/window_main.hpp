#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace app {

/// What the command line says about the window.
struct WindowOptions {
  std::optional<std::filesystem::path> file;  ///< to open at once
  std::string preset = {};                    ///< its name, to begin with instead, or ""
  std::string text = {};                      ///< that a whole model is to read, or ""
  std::size_t layer = 0;                      ///< of it, to be looked at
};

/// Opens the window and returns when it is closed: the exit status.
///
/// Throws core::Error when there is no display or the file cannot be opened.
int run_window(const WindowOptions& options);

}  // namespace app
