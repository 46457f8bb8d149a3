#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace app::platform {

/// Settings and recent files that survive from one run to the next.
struct UserState {
  std::map<std::string, std::string> settings;  ///< "theme", "scale", "width", "height" …
  std::vector<std::filesystem::path> recent;    ///< files opened, newest first
  friend bool operator==(const UserState&, const UserState&) = default;
};

/// Returns $HOME, or the current directory if it is not set.
std::filesystem::path home_directory();
/// Returns $XDG_CONFIG_HOME/attnscope, or ~/.config/attnscope.
std::filesystem::path config_directory();

/// Returns $XDG_STATE_HOME/attnscope, or ~/.local/state/attnscope.
std::filesystem::path state_directory();

/// Returns the folders of models and examples that are installed with the program, or in its sources.
std::vector<std::filesystem::path> example_directories();

/// Reads "settings" (key=value) and "recent" (one path per line) from a directory; unreadable files count as
/// empty.
UserState read_user_state(const std::filesystem::path& directory);

/// Returns the memory to write for a window that began and ends with these, if others have written since:
/// theirs, with the settings that this window changed and the files that it opened.
UserState merge_user_state(const UserState& initial, const UserState& current, UserState written);

/// Writes both, each under a temporary name first. Returns a one-line error, or "".
std::string write_user_state(const std::filesystem::path& directory, const UserState& memory);

}  // namespace app::platform
