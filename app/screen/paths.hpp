#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace app::platform {

/// What the program remembers from one run to the next.
struct Memory {
  std::map<std::string, std::string> settings;  ///< "theme", "scale", "width", "height" …
  std::vector<std::filesystem::path> recent;    ///< files opened, newest first
  friend bool operator==(const Memory&, const Memory&) = default;
};

/// HOME, or the current directory without one.
std::filesystem::path home_directory();
/// $XDG_CONFIG_HOME/attnscope, or ~/.config/attnscope.
std::filesystem::path config_directory();

/// $XDG_STATE_HOME/attnscope, or ~/.local/state/attnscope.
std::filesystem::path state_directory();

/// The folders of models and examples that were installed with the program, or lie in its sources.
std::vector<std::filesystem::path> example_directories();

/// Reads "settings" (key=value) and "recent" (one path a line) from a directory; what cannot be read is as if
/// empty.
Memory read_memory(const std::filesystem::path& directory);

/// What is to be written by a window that began with a memory and ends with another, where others have
/// written since: theirs, with the settings that this one has changed and the files that it has opened.
Memory merged(const Memory& began, const Memory& ends, Memory written);

/// Writes both, each under a temporary name first. Returns one line that says what failed, or "".
std::string write_memory(const std::filesystem::path& directory, const Memory& memory);

}  // namespace app::platform
