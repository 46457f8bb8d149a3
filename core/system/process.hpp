#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string_view>

/// What the operating system says to this process and about it.
namespace core::system {

/// As long as it lives, signals that ask the program to end (SIGINT, SIGTERM, SIGHUP) are noted, whichever
/// thread they come to; when it ends, one that nobody has taken arrives as if it came then.
///
/// The outermost one answers them: one inside it, in this thread or in another, does nothing.
class SignalBlocker {
 public:
  /// Signals that the program was told to ignore, as nohup does, stay ignored.
  SignalBlocker();
  /// Blocks these, ignored or not.
  explicit SignalBlocker(std::initializer_list<int> signals);
  ~SignalBlocker();
  SignalBlocker(const SignalBlocker&) = delete;
  SignalBlocker& operator=(const SignalBlocker&) = delete;

  /// Returns the signal that has come, once, or 0.
  int take() const;
  /// Throws Stopped when one has come that will end the program, so that unfinished files are removed.
  void check() const;

 private:
  bool is_outermost_;
};

/// Ends the program as a signal does that nobody handles.
void end_by(int signal);

/// A file that may not grow any more is an error of a write from now on, and ends nothing.
void ignore_file_size_signal();

/// Whether a terminal shows what goes to standard output, or standard error.
bool output_is_terminal();
bool errors_are_on_terminal();

/// The path of the running program; "" where the system does not tell it.
std::filesystem::path executable_path();

/// Returns the bytes that the program may still take: Linux's MemAvailable, elsewhere all of the machine's
/// memory.
std::uint64_t free_memory();

/// Hands freed memory back to the system, where the C library can.
void give_back_memory();

/// Asks for large pages for memory whose rows are read at once.
void prefer_large_pages(void* memory, std::size_t bytes);

/// Reads MemAvailable in bytes from the text of /proc/meminfo; nothing when the text does not say.
std::optional<std::uint64_t> available_bytes(std::string_view meminfo);

}  // namespace core::system
