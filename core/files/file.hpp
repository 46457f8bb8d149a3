#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "core/base/signals.hpp"

namespace core::formats {

/// The descriptor of an open file, which is closed with its owner; negative when there is none.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor();

  int number() const { return number_; }
  /// Gives it to somebody else, who closes it.
  int release();
  /// 0, or the error that only closing brought to light.
  int close();
  /// Closes it and owns another.
  void reset(int number);

 private:
  int number_;
};

/// A regular file, opened to be read.
///
/// Throws core::Error, "PATH: what is wrong", when there is none or it is a folder, a device or a pipe.
Descriptor open_regular(const std::filesystem::path& path);

/// Everything that is in a regular file.
///
/// Throws core::Error, "PATH: what is wrong", when it cannot be read or holds more than limit bytes.
std::string read_file(const std::filesystem::path& path, std::size_t limit);

/// The first bytes of a file, fewer when it is shorter; none of a folder. Throws core::Error as read_file
/// does.
std::string read_begin(const std::filesystem::path& path, std::size_t count);

/// Puts content into a file, new or old, so that it holds either the old content or all of the new, also
/// after a power cut.
///
/// A link is followed; an old file keeps its permissions and owner, and its other names: one that has some,
/// or whose owner cannot be kept, is written over once all of the content is safe beside it. A device or pipe
/// is written to as it is, and so is what this process has open, such as /dev/stdout. Throws core::Error,
/// "PATH: cannot be written: why", or Stopped when the program is asked to end; then the old file is as it
/// was and nothing is left beside it.
void write_atomically(const std::filesystem::path& path, std::string_view content);

/// Writes content to a file that must not exist yet; what is there after an error is the caller's to remove.
///
/// shown stands for the path in the message of the core::Error that it throws.
void write_new_file(const std::filesystem::path& path, std::string_view content,
                    const std::filesystem::path& shown);

/// Whether what is open has the owner and the group of an old file, or could be given them.
bool has_owner_of(int descriptor, const struct stat& old);

/// Writes all of the content to what is open: 0, or the error that stopped it. Throws Stopped when held has a
/// signal that asks to end.
int write_all(int descriptor, std::string_view content, const SignalBlocker* held = nullptr);

/// "PATH: not readable: why" for an error of the system.
std::string cannot_be_read(const std::filesystem::path& path, int error);

/// "PATH: cannot be written: why" for an error of the system.
std::string cannot_be_written(const std::filesystem::path& path, int error);

}  // namespace core::formats
