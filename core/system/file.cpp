#include "core/system/file.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstdio>
#include <random>
#include <set>
#include <system_error>

#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/base/text.hpp"
#include "core/system/process.hpp"

namespace core::system {
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
      return "its links form a cycle";
    case EFBIG:
      return "it would be larger than files may be here";
    case EROFS:
      return "the file system is read-only";
    default:
      return std::generic_category().message(error);
  }
}

[[noreturn]] void fail_reading(const fs::path& path, int error) {
  throw Error(read_error_message(path, error));
}

[[noreturn]] void fail_writing(const fs::path& path, int error) {
  throw Error(write_error_message(path, error));
}

/// Opens a regular file for reading, or a folder if that is allowed; does not wait for a pipe.
Descriptor open_for_reading(const fs::path& path, bool or_folder = false) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status;
  if (!file.is_open() || ::fstat(file.number(), &status) != 0) fail_reading(path, errno);
  if (S_ISREG(status.st_mode) || (or_folder && S_ISDIR(status.st_mode))) return file;
  if (S_ISDIR(status.st_mode)) fail_reading(path, EISDIR);
  throw Error(path.string() + ": expected a regular file, got a device or pipe");
}

/// Writes all of the content. Returns 0 or the error that stopped it. Throws Stopped on a signal to end.
int write_all(int descriptor, std::string_view content, const SignalBlocker* blocker = nullptr) {
  constexpr std::size_t max_piece = 1 << 22;  // between two checks for signals
  while (!content.empty()) {
    if (blocker) blocker->throw_if_pending();
    const ssize_t written = ::write(descriptor, content.data(), std::min(content.size(), max_piece));
    if (written < 0 && errno != EINTR) return errno;
    if (written > 0) content.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

/// Returns the descriptor that an absolute path names, without following links.
std::optional<int> parse_descriptor_path(const fs::path& path) {
  constexpr std::array names{"/dev/stdin", "/dev/stdout", "/dev/stderr"};
  for (std::size_t k = 0; k < names.size(); ++k)
    if (path == names[k]) return static_cast<int>(k);
  if (path.parent_path() != "/dev/fd" && path.parent_path() != "/proc/self/fd") return std::nullopt;
  const auto number = text::parse_unsigned(path.filename().native());
  return number && *number < 1 << 20 ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

/// Returns the file at the end of a chain of symbolic links, whether it exists or not.
fs::path resolve_symlinks(fs::path path) {
  std::error_code ignored;
  for (int links = 0; links < 40 && fs::is_symlink(path, ignored); ++links)
    path = path.parent_path() / fs::read_symlink(path, ignored);
  return path;
}

}  // namespace

std::string read_error_message(const fs::path& path, int error) {
  if (error == ENOENT) return path.string() + ": no such file";
  if (error == EISDIR) return path.string() + ": expected a file, got a directory";
  return path.string() + ": not readable: " + reason(error);
}

std::string write_error_message(const fs::path& path, int error) {
  return path.string() + ": cannot be written: " + reason(error);
}

Descriptor::Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(number_, other.number_);
  return *this;
}

Descriptor::~Descriptor() {
  if (is_open()) ::close(number_);
}

std::optional<int> descriptor_from_path(const fs::path& path) {
  std::error_code error;
  fs::path at = fs::absolute(path, error).lexically_normal();
  // Follows links only up to the name of a descriptor, which is itself a link to the open file.
  for (int links = 0; links < 40 && !error; ++links) {
    if (const auto number = parse_descriptor_path(at)) return number;
    if (!fs::is_symlink(at, error)) return std::nullopt;
    at = (at.parent_path() / fs::read_symlink(at, error)).lexically_normal();
  }
  return std::nullopt;
}

void buffer_pipe_to_file(const fs::path& path, std::size_t limit) {
  const auto pipe = descriptor_from_path(path);
  struct stat status;
  if (!pipe || ::fstat(*pipe, &status) != 0 || !(S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode)))
    return;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), &std::fclose);
  if (!file) fail_reading(path, errno);
  const int descriptor = ::fileno(file.get());
  std::string bytes(1 << 18, '\0');
  for (std::size_t n_read = 0;;) {
    const ssize_t got = ::read(*pipe, bytes.data(), bytes.size());
    if (got == 0) break;
    if (got < 0 && errno != EINTR) fail_reading(path, errno);
    if (got < 0) continue;
    if ((n_read += static_cast<std::size_t>(got)) > limit)
      throw Error(
          fmt::format("{}: expected at most {} bytes through a pipe, got more", path.string(), limit));
    if (const int error = write_all(descriptor, {bytes.data(), static_cast<std::size_t>(got)}))
      fail_reading(path, error);
  }
  if (::lseek(descriptor, 0, SEEK_SET) != 0 || ::dup2(descriptor, *pipe) < 0) fail_reading(path, errno);
}

std::string read_prefix(const fs::path& path, std::size_t count) {
  const Descriptor file = open_for_reading(path, true);
  std::string begin(count, '\0');
  const ssize_t got = ::read(file.number(), begin.data(), count);
  if (got < 0 && errno != EISDIR) fail_reading(path, errno);
  begin.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  return begin;
}

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

std::string read_file(const fs::path& path, std::size_t limit) {
  const Descriptor file = open_for_reading(path);
  struct stat status;
  if (::fstat(file.number(), &status) != 0) fail_reading(path, errno);
  // One byte more than the reported size, to detect the end; files of /proc report that they are empty.
  const std::size_t step =
      std::clamp<std::size_t>(static_cast<std::size_t>(status.st_size) + 1, 1 << 12, 1 << 20);
  std::string content;
  for (;;) {
    const std::size_t old_size = content.size();
    content.resize(old_size + step);
    const ssize_t count = ::read(file.number(), content.data() + old_size, step);
    if (count < 0 && errno != EINTR) fail_reading(path, errno);
    content.resize(old_size + (count > 0 ? static_cast<std::size_t>(count) : 0));
    if (content.size() > limit)
      throw Error(fmt::format("{}: expected at most {} bytes, got more", path.string(), limit));
    if (count == 0) return content;
  }
}

OpenFile::OpenFile(const fs::path& path, BetweenReads between_reads)
    : path_(path), descriptor_(open_for_reading(path)) {
  struct stat status;
  if (::fstat(descriptor_.number(), &status) != 0) fail_reading(path, errno);
  size_ = static_cast<std::uint64_t>(status.st_size);
  device_ = status.st_dev;
  inode_ = status.st_ino;
  if (between_reads == BetweenReads::closed) descriptor_ = Descriptor();
}

void OpenFile::read(std::uint64_t from, std::uint64_t count, std::string& buffer) const {
  buffer.resize(count);
  read(from, count, buffer.data());
}

void OpenFile::read(std::uint64_t from, std::uint64_t count, char* to) const {
  assert(from <= size_ && count <= size_ - from);
  const Descriptor again = descriptor_.is_open() ? Descriptor() : open_for_reading(path_);
  const int descriptor = again.is_open() ? again.number() : descriptor_.number();
  struct stat status;
  if (again.is_open() &&
      (::fstat(descriptor, &status) != 0 || status.st_dev != device_ || status.st_ino != inode_))
    throw Error(path_.string() + ": was replaced while it was read");
  for (std::uint64_t done = 0; done < count;) {
    const ssize_t got = ::pread(descriptor, to + done, count - done, static_cast<off_t>(from + done));
    if (got < 0 && errno != EINTR) fail_reading(path_, errno);
    if (got == 0)
      throw Error(fmt::format("{}: became shorter while it was read: expected {} bytes, got {}",
                              path_.string(), size_, from + done));
    if (got > 0) done += static_cast<std::uint64_t>(got);
  }
}

std::string OpenFile::bytes(std::uint64_t from, std::uint64_t count) const {
  std::string buffer;
  read(from, count, buffer);
  return buffer;
}

/// A temporary file or folder; the destructor removes it unless path has been cleared.
struct TempPath {
  fs::path path;
  explicit TempPath(fs::path temporary) : path(std::move(temporary)) {}
  TempPath(const TempPath&) = delete;
  TempPath& operator=(const TempPath&) = delete;
  ~TempPath() {
    std::error_code ignored;
    if (!path.empty()) fs::remove_all(path, ignored);
  }
};

namespace {

constexpr std::string_view temp_prefix = ".attnscope-";

/// Returns a new hidden name in a folder.
fs::path temp_name(const fs::path& folder) {
  return folder / (std::string(temp_prefix) + random_name());
}

bool is_temp_name(std::string_view name) {
  return name.size() == temp_prefix.size() + 16 && name.starts_with(temp_prefix) &&
         name.find_first_not_of(text::hexadecimal_digits, temp_prefix.size()) == name.npos;
}

/// Makes the entries of a folder survive a power failure, if its file system can.
void sync_folder(const fs::path& folder) {
  const Descriptor open(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (open.is_open()) ::fsync(open.number());
}

/// Locks a new file or folder, so that remove_stale() keeps it. Returns false if the remove_stale() of
/// another process has removed it before the lock.
bool lock_new(const Descriptor& created) {
  struct stat now;
  return ::flock(created.number(), LOCK_EX) != 0 || ::fstat(created.number(), &now) != 0 || now.st_nlink > 0;
}

/// Writes a new file to the disk, with the permissions of an old one if there is one, and renames it while it
/// is still locked. Returns 0 or the error.
int write_and_rename(const fs::path& path, const fs::path& name, std::string_view content,
                     const struct stat* old, const SignalBlocker& blocker) {
  Descriptor file;
  do {
    file = Descriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!file.is_open()) return errno;
  } while (!lock_new(file));
  if (old && ::fchmod(file.number(), old->st_mode & 0777) != 0) return errno;
  if (const int error = write_all(file.number(), content, &blocker)) return error;
  return ::fsync(file.number()) == 0 && ::rename(path.c_str(), name.c_str()) == 0 ? 0 : errno;
}

/// Opens and locks a file; if that fails, errno is EEXIST or EWOULDBLOCK when another process has it or has
/// just removed it.
Descriptor open_and_lock(const fs::path& path, int flags) {
  Descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC | flags, 0600));
  if (!file.is_open() || ::flock(file.number(), LOCK_EX | LOCK_NB) != 0) return Descriptor();
  struct stat status;
  if (::fstat(file.number(), &status) == 0 && status.st_nlink > 0) return file;
  errno = EWOULDBLOCK;
  return Descriptor();
}

}  // namespace

std::string random_name() {
  std::random_device random;
  char name[17];
  std::snprintf(name, sizeof name, "%08x%08x", static_cast<unsigned>(random()),
                static_cast<unsigned>(random()));
  return name;
}

void remove_stale(const fs::path& folder) {
  for (const fs::path& path : list_folder(folder).paths) {
    if (!is_temp_name(path.filename().native())) continue;
    const Descriptor left(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    if (!left.is_open() || ::flock(left.number(), LOCK_EX | LOCK_NB) != 0) continue;  // it is being written
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
}

void write_atomically(const fs::path& path, std::string_view content) {
  const auto own = descriptor_from_path(path);
  struct stat old;
  const bool exists = ::stat(path.c_str(), &old) == 0;
  if (!own && !exists && errno != ENOENT) fail_writing(path, errno);
  if (!own && exists && S_ISDIR(old.st_mode)) fail_writing(path, EISDIR);
  if (own || (exists && !S_ISREG(old.st_mode))) {
    const Descriptor device(own ? -1 : ::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!own && !device.is_open()) fail_writing(path, errno);
    if (const int error = write_all(own.value_or(device.number()), content)) fail_writing(path, error);
    return;
  }
  const fs::path target = resolve_symlinks(path), folder = target.parent_path();
  if (exists && ::access(target.c_str(), W_OK) != 0) fail_writing(path, errno);
  const SignalBlocker blocker;
  remove_stale(folder);
  TempPath temporary(temp_name(folder));
  if (const int error = write_and_rename(temporary.path, target, content, exists ? &old : nullptr, blocker))
    fail_writing(path, error);
  temporary.path.clear();
  sync_folder(folder);  // errors are ignored: the file is in place
}

struct Staging::State {
  SignalBlocker blocker;  // constructed first, destroyed last
  fs::path directory;
  /// Folders made for the files; the destructor removes those that are empty.
  struct Folders : std::vector<fs::path> {
    ~Folders() {
      std::error_code ignored;
      for (auto path = rbegin(); path != rend(); ++path) fs::remove(*path, ignored);
    }
  } created;
  TempPath staged_folder{{}};
  Descriptor lock;
  std::vector<fs::path> names;

  explicit State(const fs::path& where) : directory(where) {
    make_folders(directory, &created);
    remove_stale(directory);
    const fs::path hidden = temp_name(directory);
    do {
      if (::mkdir(hidden.c_str(), 0700) != 0) fail_writing(directory, errno);
      staged_folder.path = hidden;
      lock = Descriptor(::open(hidden.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      if (!lock.is_open() && errno != ENOENT) fail_writing(directory, errno);
    } while (!lock.is_open() || !lock_new(lock));
  }

  /// Creates a folder and its missing parents; appends those created to `to`.
  void make_folders(const fs::path& path, Folders* to) {
    std::error_code error;
    if (path.empty() || fs::is_directory(path, error)) return;
    make_folders(path.parent_path(), to);
    if (!path.has_filename()) return;  // "a/b/" is the folder "a/b"
    if (fs::create_directory(path, error)) {
      if (to) to->push_back(path);
    } else if (std::error_code other; !fs::is_directory(path, other)) {
      fail_writing(directory, error && error.value() != EEXIST ? error.value() : ENOTDIR);
    }
  }
};

Staging::Staging(const fs::path& directory) : state_(std::make_unique<State>(directory)) {}

Staging::~Staging() = default;

void Staging::add(const fs::path& name, std::string_view content) {
  state_->blocker.throw_if_pending();
  const fs::path path = state_->staged_folder.path / name, target = state_->directory / name;
  state_->make_folders(path.parent_path(), nullptr);
  struct stat old;
  const bool exists = ::stat(target.c_str(), &old) == 0 && S_ISREG(old.st_mode);
  if (const int error = write_and_rename(path, path, content, exists ? &old : nullptr, state_->blocker))
    fail_writing(target, error);
  state_->names.push_back(name);
}

std::vector<fs::path> Staging::commit() {
  std::vector<fs::path> targets;
  std::set<fs::path> folders;
  std::error_code ignored;
  for (const fs::path& name : state_->names) {
    const fs::path& target = targets.emplace_back(state_->directory / name);
    if (fs::is_directory(target, ignored)) fail_writing(target, EISDIR);
    state_->make_folders(target.parent_path(), &state_->created);
    folders.insert(target.parent_path());
  }
  state_->blocker.throw_if_pending();
  for (std::size_t k = 0; k < targets.size(); ++k) {
    if (::rename((state_->staged_folder.path / state_->names[k]).c_str(), targets[k].c_str()) == 0) continue;
    throw Error(write_error_message(targets[k], errno) +
                (k == 0 ? ""
                        : fmt::format("; {} of {} files are there, up to {}", k, targets.size(),
                                      targets[k - 1].filename().string())));
  }
  for (const fs::path& folder : folders) sync_folder(folder);
  return targets;
}

std::optional<LockFile> LockFile::create(const fs::path& path, const fs::path& reported_path) {
  Descriptor file = open_and_lock(path, O_CREAT | O_EXCL);
  if (file.is_open()) return LockFile(std::move(file));
  const int error = errno;
  if (error == EEXIST || error == EWOULDBLOCK) return std::nullopt;
  ::unlink(path.c_str());  // some file systems have no locks
  fail_writing(reported_path, error);
}

std::optional<LockFile> LockFile::try_lock(const fs::path& path) {
  Descriptor file = open_and_lock(path, 0);
  return file.is_open() ? std::optional(LockFile(std::move(file))) : std::nullopt;
}

std::string file_stamp(const fs::path& path) {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) return "";
  // Unlike the modification time, the change time (ctime) cannot be set back.
  const auto moment = [](const timespec& time) { return fmt::format(" {}.{}", time.tv_sec, time.tv_nsec); };
  return fmt::format("{} {}{}{}", status.st_ino, status.st_size, moment(status.st_mtim),
                     moment(status.st_ctim));
}

Listing list_folder(const fs::path& folder) {
  Listing listing;
  std::error_code error;
  for (fs::directory_iterator entry(folder.empty() ? "." : folder, error), end; !error && entry != end;
       entry.increment(error))
    listing.paths.push_back(folder / entry->path().filename());
  listing.error = error.value();
  std::ranges::sort(listing.paths);
  return listing;
}

}  // namespace core::system
