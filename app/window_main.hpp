#pragma once

#include <filesystem>
#include <optional>

namespace app {

struct WindowOptions {
  std::optional<std::filesystem::path> file;  ///< to open first
};

/// Runs the window until it is closed and gives the exit status: 0 done, 1 when there can be no window.
int run_window(const WindowOptions& options);

}  // namespace app
