#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string_view>

/// Signals, terminals and memory of this process, as reported by the operating system.
namespace core::system {

/// Scope that holds back signals to end the program (SIGINT, SIGTERM, SIGHUP) in any thread; the destructor
/// raises one that was not taken.
///
/// Only the outermost one handles signals: one nested in it, in this thread or another, does nothing.
class SignalBlocker {
 public:
  /// Keeps ignoring signals that are already ignored, as under nohup.
  SignalBlocker();
  /// Blocks these signals, ignored or not.
  explicit SignalBlocker(std::initializer_list<int> signals);
  ~SignalBlocker();
  SignalBlocker(const SignalBlocker&) = delete;
  SignalBlocker& operator=(const SignalBlocker&) = delete;

  /// Returns the pending signal, once, or 0.
  int take() const;
  /// Throws Stopped when a pending signal will end the program, so that unfinished files are removed.
  void throw_if_pending() const;

 private:
  bool is_outermost_;
};

/// Ends the program like an unhandled signal.
void terminate_by_signal(int signal);

/// Makes a write beyond the file size limit an error instead of a signal that ends the program.
void ignore_file_size_signal();

/// Returns whether standard output, or standard error, is a terminal.
bool stdout_is_terminal();
bool stderr_is_terminal();

/// Returns the value of an environment variable, "" where it is not set.
std::string environment_variable(const char* name);

/// Returns the path of the running program; "" if the system does not know it.
std::filesystem::path executable_path();

/// Returns the bytes of available memory: Linux's MemAvailable, elsewhere all of the machine's memory.
std::uint64_t available_memory();

/// Returns freed memory to the system, if the C library can.
void trim_heap();

/// Requests large pages for memory whose rows are read together.
void advise_huge_pages(void* memory, std::size_t bytes);

/// Reads MemAvailable in bytes from the text of /proc/meminfo; nothing if it is missing.
std::optional<std::uint64_t> parse_mem_available(std::string_view meminfo);

}  // namespace core::system
