#include "core/files/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <system_error>
#include <utility>

#include "core/base/error.hpp"
#include "core/files/own_descriptor.hpp"
#include "core/files/unfinished.hpp"

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
    case ELOOP:
      return "its links lead in a circle";
    case EFBIG:
      return "it would be larger than files may be here";
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

/// The file at the end of a chain of symbolic links that is no loop, whether it exists or not.
fs::path followed(fs::path path) {
  std::error_code ignored;
  for (int links = 0; links < 40 && fs::is_symlink(path, ignored); ++links)
    path = path.parent_path() / fs::read_symlink(path, ignored);
  return path;
}

/// Writes over a file that keeps its other names. 0, or the error of the system.
int overwrite(const fs::path& target, std::string_view content) {
  Descriptor file(::open(target.c_str(), O_WRONLY | O_CLOEXEC));
  if (file.number() < 0) return errno;
  if (const int error = write_all(file.number(), content)) return error;
  if (::ftruncate(file.number(), static_cast<off_t>(content.size())) != 0 || ::fsync(file.number()) != 0)
    return errno;
  return file.close();
}

/// Writes over a file that keeps its other names and its owner. The whole content stands beside it meanwhile,
/// under a name that nobody sweeps: whoever ends this half-way finds it there.
int replace_content(Unfinished& whole, const fs::path& target, std::string_view content,
                    const Descriptor& folder) {
  const fs::path beside =
      target.parent_path() / ("attnscope-whole-" + random_name() + target.extension().string());
  if (const int error = whole.move_to(beside)) return error;
  ::fsync(folder.number());
  // When it fails half-way, the content takes the place of the old one under this name at least.
  if (overwrite(target, content) != 0) return ::rename(beside.c_str(), target.c_str()) == 0 ? 0 : errno;
  ::unlink(beside.c_str());
  return 0;
}

void replace(const fs::path& path, const std::optional<struct stat>& old, std::string_view content) {
  const fs::path target = followed(path);
  if (old && ::access(target.c_str(), W_OK) != 0) fail_writing(path, errno);
  const SignalBlocker held;
  sweep(target.parent_path());
  const Descriptor folder = open_folder(target.parent_path());
  Unfinished whole(target.parent_path(), Unfinished::Kind::file, path);
  const bool over_old = old && (old->st_nlink > 1 || !has_owner_of(whole.descriptor(), *old));
  int error = old && ::fchmod(whole.descriptor(), old->st_mode & 07777) != 0 ? errno : 0;
  if (error == 0) error = write_all(whole.descriptor(), content, &held);
  if (error == 0 && ::fsync(whole.descriptor()) != 0) error = errno;
  if (error == 0) error = over_old ? replace_content(whole, target, content, folder) : whole.move_to(target);
  if (error != 0) fail_writing(path, error);
  ::fsync(folder.number());  // nothing may fail any more
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

void Descriptor::reset(int number) {
  const Descriptor old(std::exchange(number_, number));
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
  struct stat about;
  const bool is_known = ::fstat(descriptor.number(), &about) == 0 && about.st_size >= 0;
  constexpr std::size_t least = 1 << 12, most = 1 << 20;  // files of /proc say that they are empty
  const std::size_t step =
      is_known ? std::clamp(static_cast<std::size_t>(about.st_size) + 1, least, most) : most;
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

bool has_owner_of(int descriptor, const struct stat& old) {
  struct stat about;
  return ::fstat(descriptor, &about) == 0 && ((about.st_uid == old.st_uid && about.st_gid == old.st_gid) ||
                                              ::fchown(descriptor, old.st_uid, old.st_gid) == 0);
}

int write_all(int descriptor, std::string_view content, const SignalBlocker* held) {
  constexpr std::size_t most = 1 << 22;  // between two looks at the signals
  while (!content.empty()) {
    if (held) held->check();
    const ssize_t written = ::write(descriptor, content.data(), std::min(content.size(), most));
    if (written < 0 && errno != EINTR) return errno;
    if (written > 0) content.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

void write_atomically(const fs::path& path, std::string_view content) {
  if (const auto own = own_descriptor(path)) {
    if (const int error = write_all(*own, content)) fail_writing(path, error);
    return;
  }
  struct stat old;
  const bool exists = ::stat(path.c_str(), &old) == 0;
  if (!exists && errno != ENOENT) fail_writing(path, errno);
  if (exists && S_ISDIR(old.st_mode)) fail_writing(path, EISDIR);
  if (!exists || S_ISREG(old.st_mode)) {
    replace(path, exists ? std::optional(old) : std::nullopt, content);
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
