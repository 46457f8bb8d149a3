#include "app/screen/paths.hpp"

#include <algorithm>
#include <sstream>
#include <system_error>

#include "app/screen/kept.hpp"
#include "app/session/remembered.hpp"
#include "core/base/error.hpp"
#include "core/system/file.hpp"
#include "core/system/process.hpp"

namespace app::platform {
namespace {

namespace fs = std::filesystem;
using core::system::environment_variable;

std::vector<std::string> lines_of(const fs::path& name) {
  std::vector<std::string> lines;
  std::istringstream in(read_kept(name));
  for (std::string line; std::getline(in, line);)
    if (!line.empty()) lines.push_back(line);
  return lines;
}

}  // namespace

fs::path home_directory() {
  const std::string home = environment_variable("HOME");
  std::error_code ignored;
  return home.empty() ? fs::current_path(ignored) : fs::path(home);
}

std::vector<fs::path> example_directories() {
  const fs::path program = core::system::executable_path();
  std::vector<fs::path> all{program.parent_path().parent_path() / "share/attnscope/examples"};
  fs::path folder = program.parent_path();
  for (int up = 0; up < 3 && folder.has_relative_path(); ++up) folder = folder.parent_path();
  all.push_back(folder / "assets/examples");  // for build/PRESET/bin
  std::vector<fs::path> found;
  for (const fs::path& each : all) {
    if (!core::system::is_folder(each)) continue;
    for (const fs::path& path : core::system::list_folder(each).paths)
      if (core::system::is_folder(path)) found.push_back(path);
    break;
  }
  std::ranges::sort(found);
  return found;
}

fs::path config_directory() {
  const fs::path config = environment_variable("XDG_CONFIG_HOME");
  // The XDG base directory specification says that relative paths must be ignored.
  return (config.is_absolute() ? config : home_directory() / ".config") / "attnscope";
}

fs::path state_directory() {
  const fs::path state = environment_variable("XDG_STATE_HOME");
  return (state.is_absolute() ? state : home_directory() / ".local/state") / "attnscope";
}

UserState read_user_state(const fs::path& directory) {
  UserState memory;
  for (const std::string& line : lines_of(directory / "settings")) {
    const std::size_t equals = line.find('=');
    if (equals != std::string::npos) memory.settings[line.substr(0, equals)] = line.substr(equals + 1);
  }
  for (const std::string& line : lines_of(directory / "recent")) memory.recent.emplace_back(line);
  if (memory.recent.size() > max_recent) memory.recent.resize(max_recent);
  return memory;
}

UserState merge_user_state(const UserState& initial, const UserState& current, UserState written) {
  for (const auto& [key, value] : current.settings) {
    const auto was = initial.settings.find(key);
    if (was == initial.settings.end() || was->second != value || !written.settings.contains(key))
      written.settings[key] = value;
  }
  // Opened files move to the front; the others keep their order.
  auto other = initial.recent.rbegin();
  auto opened = current.recent.rbegin();
  for (; opened != current.recent.rend(); ++opened, ++other) {
    other = std::find(other, initial.recent.rend(), *opened);
    if (other == initial.recent.rend()) break;
  }
  for (; opened != current.recent.rend(); ++opened)
    written.recent = with_recent(std::move(written.recent), *opened);
  return written;
}

std::string write_user_state(const fs::path& directory, const UserState& memory) {
  std::string settings, recent;
  for (const auto& [key, value] : memory.settings) settings += key + "=" + value + "\n";
  for (const fs::path& file : memory.recent) {
    // A line break in a file name would split it in two.
    if (file.native().find('\n') == std::string::npos) recent += file.native() + "\n";
  }
  try {
    write_kept(directory / "settings", settings);
    write_kept(directory / "recent", recent);
  } catch (const core::Error&) {
    return directory.string() + ": settings and recent files cannot be written there";
  }
  return "";
}

}  // namespace app::platform
