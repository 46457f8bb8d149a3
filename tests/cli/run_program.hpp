#pragma once

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/temporary_directory.hpp"

namespace cli {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool is_sanitized = true;
#else
constexpr bool is_sanitized = false;
#endif

struct Outcome {
  int status;  ///< exit status, or -1 if a signal ended the program
  std::string out, err;
  double peak_bytes = 0;  ///< in bytes; at least the peak of this process, which a child inherits until exec
};

/// Returns whether a process catches SIGINT but not SIGTERM, according to /proc.
inline bool waits_for_interrupts(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string word; status >> word;)
    if (unsigned long long caught = 0; word == "SigCgt:" && status >> std::hex >> caught)
      return (caught >> (SIGINT - 1) & 1) != 0 && (caught >> (SIGTERM - 1) & 1) == 0;
  return false;
}

/// Sends SIGINT as soon as the process catches it, unless it ends before.
inline void interrupt(pid_t process) {
  siginfo_t ended{};
  while (::waitid(P_PID, static_cast<id_t>(process), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         ended.si_pid == 0) {
    if (waits_for_interrupts(process)) {
      ::kill(process, SIGINT);
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

/// Runs attnscope without a display, writes its standard output to out_path if given, and calls meanwhile().
inline Outcome run(std::vector<std::string> arguments, const char* out_path = nullptr,
                   void (*meanwhile)(pid_t) = nullptr) {
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
        !std::string(*variable).starts_with("WAYLAND_DISPLAY=") &&
        !std::string(*variable).starts_with("XDG_RUNTIME_DIR="))
      environment.push_back(*variable);
  std::string runtime = "XDG_RUNTIME_DIR=" + dir.path().string();  // else GLFW's Wayland prints errors
  environment.push_back(runtime.data());
  environment.push_back(nullptr);

  pid_t child = 0;
  const int error = ::posix_spawn(&child, PROGRAM, &files, nullptr, argv.data(), environment.data());
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) throw std::runtime_error("cannot run " PROGRAM);
  if (meanwhile) meanwhile(child);
  int status = 0;
  struct rusage usage {};
  ::wait4(child, &status, 0, &usage);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, out_path ? "" : support::bytes_of(out),
          support::bytes_of(err), 1024.0 * static_cast<double>(usage.ru_maxrss)};
}

}  // namespace cli
