#pragma once

#include <filesystem>
#include <optional>

namespace app {

/// What the command line says about the window.
struct WindowOptions {
  std::optional<std::filesystem::path> file;  ///< to open at once
};

/// Opens the window and returns when it is closed: the exit status.
///
/// Throws core::Error when there is no display or the file cannot be opened.
int run_window(const WindowOptions& options);

}  // namespace app
