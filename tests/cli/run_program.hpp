#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/temporary_directory.hpp"

namespace cli {

struct Outcome {
  int status;  ///< what the program returned, or -1 when a signal ended it
  std::string out, err;
};

/// Runs attnscope with no display; out_path replaces what its standard output goes to.
inline Outcome run(std::vector<std::string> arguments, const char* out_path = nullptr) {
  const support::TemporaryDirectory dir;
  const std::string out = out_path ? out_path : (dir / "out").string(), err = (dir / "err").string();
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, out.c_str(), O_WRONLY | O_CREAT, 0600);
  posix_spawn_file_actions_addopen(&files, 2, err.c_str(), O_WRONLY | O_CREAT, 0600);

  arguments.insert(arguments.begin(), PROGRAM);
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  std::vector<char*> environment;
  for (char** variable = environ; *variable; ++variable)
    if (!std::string(*variable).starts_with("DISPLAY=") &&
        !std::string(*variable).starts_with("WAYLAND_DISPLAY="))
      environment.push_back(*variable);
  environment.push_back(nullptr);

  pid_t child = 0;
  const int error = ::posix_spawn(&child, PROGRAM, &files, nullptr, argv.data(), environment.data());
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) throw std::runtime_error("cannot run " PROGRAM);
  int status = 0;
  ::waitpid(child, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, out_path ? "" : support::bytes_of(out),
          support::bytes_of(err)};
}

}  // namespace cli
