#include "core/formats/files/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <system_error>
#include <utility>

#include "core/error.hpp"

namespace core::formats {
namespace {

namespace fs = std::filesystem;

std::string reason(int error) {
  switch (error) {
    case EACCES:
    case EPERM:
      return "permission denied";
    case ENOENT:
      return "no such file or directory";
    case ENOSPC:
      return "no space left on the disk";
    case EISDIR:
      return "it is a directory";
    case ENOTDIR:
      return "part of the path is not a directory";
    case EROFS:
      return "the file system is read-only";
    default:
      return std::generic_category().message(error);
  }
}

[[noreturn]] void fail_reading(const fs::path& path, int error) {
  throw Error(cannot_be_read(path, error));
}

[[noreturn]] void fail_writing(const fs::path& path, int error) {
  throw Error(cannot_be_written(path, error));
}

/// Opens a regular file to be read, or a folder where one may stand in its place; a pipe is not waited for.
Descriptor opened(const fs::path& path, bool or_folder) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat about;
  if (file.number() < 0 || ::fstat(file.number(), &about) != 0) fail_reading(path, errno);
  if (S_ISREG(about.st_mode) || (or_folder && S_ISDIR(about.st_mode))) return file;
  if (S_ISDIR(about.st_mode)) fail_reading(path, EISDIR);
  throw Error(path.string() + ": expected a regular file, got a device or pipe");
}

/// 0, or the error that stopped the writing.
int write_all(int descriptor, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(descriptor, content.data(), content.size());
    if (written < 0 && errno != EINTR) return errno;
    if (written > 0) content.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

/// The file at the end of a chain of symbolic links, whether it exists or not.
fs::path followed(fs::path path) {
  std::error_code ignored;
  for (int links = 0; links < 40 && fs::is_symlink(path, ignored); ++links)
    path = path.parent_path() / fs::read_symlink(path, ignored);
  return path;
}

/// Opens a new hidden file beside the target, with the permissions that a new file gets.
std::pair<int, fs::path> open_beside(const fs::path& target) {
  const std::string stem = ".attnscope-" + std::to_string(::getpid()) + "-";
  for (int attempt = 0;; ++attempt) {
    fs::path name = target.parent_path() / (stem + std::to_string(attempt));
    const int descriptor = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor >= 0 || errno != EEXIST || attempt == 1000) return {descriptor, std::move(name)};
  }
}

void replace(const fs::path& path, const std::optional<mode_t>& old_mode, std::string_view content) {
  const fs::path target = followed(path);
  if (old_mode && ::access(target.c_str(), W_OK) != 0) fail_writing(path, errno);
  const auto [number, temporary] = open_beside(target);
  if (number < 0) fail_writing(path, errno);
  Descriptor descriptor(number);
  int error = old_mode && ::fchmod(number, *old_mode) != 0 ? errno : 0;
  if (error == 0) error = write_all(number, content);
  if (error == 0 && ::fsync(number) != 0) error = errno;
  const int close_error = descriptor.close();
  if (error == 0) error = close_error;
  if (error == 0 && ::rename(temporary.c_str(), target.c_str()) != 0) error = errno;
  if (error == 0) return;
  ::unlink(temporary.c_str());
  fail_writing(path, error);
}

}  // namespace

std::string cannot_be_read(const fs::path& path, int error) {
  if (error == ENOENT) return path.string() + ": no such file";
  if (error == EISDIR) return path.string() + ": expected a file, got a directory";
  return path.string() + ": not readable: " + reason(error);
}

std::string cannot_be_written(const fs::path& path, int error) {
  return path.string() + ": cannot be written: " + reason(error);
}

Descriptor::Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}

Descriptor::~Descriptor() {
  if (number_ >= 0) ::close(number_);
}

int Descriptor::release() {
  return std::exchange(number_, -1);
}

int Descriptor::close() {
  return ::close(release()) == 0 ? 0 : errno;
}

Descriptor open_regular(const fs::path& path) {
  return opened(path, false);
}

std::string read_begin(const fs::path& path, std::size_t count) {
  const Descriptor descriptor = opened(path, true);
  std::string begin(count, '\0');
  const ssize_t got = ::read(descriptor.number(), begin.data(), count);
  if (got < 0 && errno != EISDIR) fail_reading(path, errno);
  begin.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  return begin;
}

std::string read_file(const fs::path& path, std::size_t limit) {
  const Descriptor descriptor = open_regular(path);
  constexpr std::size_t step = 1 << 20;
  std::string content;
  for (;;) {
    const std::size_t old_size = content.size();
    content.resize(old_size + step);
    const ssize_t count = ::read(descriptor.number(), content.data() + old_size, step);
    const int error = count < 0 ? errno : 0;
    content.resize(old_size + (count > 0 ? static_cast<std::size_t>(count) : 0));
    if (error != 0 && error != EINTR) fail_reading(path, error);
    if (content.size() > limit)
      throw Error(path.string() + ": expected at most " + std::to_string(limit) + " bytes, got more");
    if (count == 0) return content;
  }
}

void write_atomically(const fs::path& path, std::string_view content) {
  struct stat old;
  const bool exists = ::stat(path.c_str(), &old) == 0;
  if (exists && S_ISDIR(old.st_mode)) fail_writing(path, EISDIR);
  if (!exists || S_ISREG(old.st_mode)) {
    replace(path, exists ? std::optional<mode_t>(old.st_mode & 07777) : std::nullopt, content);
    return;
  }
  Descriptor device(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (device.number() < 0) fail_writing(path, errno);
  const int error = write_all(device.number(), content);
  if (error != 0) fail_writing(path, error);
}

void write_new_file(const fs::path& path, std::string_view content, const fs::path& shown) {
  Descriptor descriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (descriptor.number() < 0) fail_writing(shown, errno);
  const int error = write_all(descriptor.number(), content);
  const int close_error = descriptor.close();
  if (error != 0 || close_error != 0) fail_writing(shown, error != 0 ? error : close_error);
}

}  // namespace core::formats
