#include "core/files/file.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/base/text.hpp"
#include "core/base/token.hpp"
#include "core/files/json.hpp"

namespace core::formats {

namespace {

namespace fs = std::filesystem;

/// A file without a name, on the disk where that can be.
Descriptor nameless_file() {
  std::error_code nowhere;
  const fs::path folder = fs::temp_directory_path(nowhere);
  Descriptor on_disk(nowhere ? -1 : ::open(folder.c_str(), O_RDWR | O_TMPFILE | O_CLOEXEC, 0600));
  return on_disk.number() >= 0 ? std::move(on_disk) : Descriptor(::memfd_create("attnscope", MFD_CLOEXEC));
}

/// The descriptor that a path from the root names by itself.
std::optional<int> descriptor_called(const fs::path& path) {
  constexpr std::array names{"/dev/stdin", "/dev/stdout", "/dev/stderr"};
  for (std::size_t k = 0; k < names.size(); ++k)
    if (path == names[k]) return static_cast<int>(k);
  const fs::path folder = path.parent_path();
  if (folder != "/dev/fd" && folder != "/proc/self/fd" && folder != "/proc/thread-self/fd" &&
      folder != "/proc/" + std::to_string(::getpid()) + "/fd")
    return std::nullopt;
  const auto number = text::parse_whole_number(path.filename().native());
  return number && *number < 1 << 20 ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

}  // namespace

std::optional<int> own_descriptor(const fs::path& path) {
  std::error_code error;
  fs::path at = fs::absolute(path, error).lexically_normal();
  // Links are followed up to a name of a descriptor, and not that, which is a link to what it has open.
  for (int links = 0; links < 40 && !error; ++links) {
    if (const auto number = descriptor_called(at)) return number;
    if (!fs::is_symlink(at, error)) return std::nullopt;
    at = (at.parent_path() / fs::read_symlink(at, error)).lexically_normal();
  }
  return std::nullopt;
}

void read_pipe_whole(const fs::path& path, std::size_t limit) {
  const auto number = own_descriptor(path);
  struct stat about;
  if (!number || ::fstat(*number, &about) != 0 || !(S_ISFIFO(about.st_mode) || S_ISSOCK(about.st_mode)))
    return;
  const Descriptor file = nameless_file();
  if (file.number() < 0) throw Error(cannot_be_read(path, errno));
  std::vector<char> bytes(1 << 18);
  for (std::size_t held = 0;;) {
    const ssize_t got = ::read(*number, bytes.data(), bytes.size());
    if (got == 0) break;
    if (got < 0 && errno != EINTR) throw Error(cannot_be_read(path, errno));
    if (got < 0) continue;
    if ((held += static_cast<std::size_t>(got)) > limit)
      throw Error(path.string() + ": expected at most " + std::to_string(limit) +
                  " bytes through a pipe, got more");
    if (const int error = write_all(file.number(), {bytes.data(), static_cast<std::size_t>(got)}))
      throw Error(cannot_be_read(path, error));
  }
  if (::lseek(file.number(), 0, SEEK_SET) != 0 || ::dup2(file.number(), *number) < 0)
    throw Error(cannot_be_read(path, errno));
}

OpenFile::OpenFile(const std::filesystem::path& path, Keeps keeps)
    : path_(path), descriptor_(open_regular(path)) {
  struct stat about;
  if (::fstat(descriptor_.number(), &about) != 0) throw Error(cannot_be_read(path, errno));
  size_ = static_cast<std::uint64_t>(about.st_size);
  device_ = about.st_dev;
  number_ = about.st_ino;
  if (keeps == Keeps::closed) descriptor_.close();
}

void OpenFile::read(std::uint64_t from, std::uint64_t count, std::string& buffer) const {
  assert(from <= size_ && count <= size_ - from);
  buffer.resize(count);
  const Descriptor again(descriptor_.number() < 0 ? open_regular(path_) : Descriptor(-1));
  const int descriptor = again.number() < 0 ? descriptor_.number() : again.number();
  struct stat about;
  if (again.number() >= 0 &&
      (::fstat(descriptor, &about) != 0 || about.st_dev != device_ || about.st_ino != number_))
    throw Error(path_.string() + ": was replaced while it was read");
  for (std::uint64_t done = 0; done < count;) {
    const ssize_t got =
        ::pread(descriptor, buffer.data() + done, count - done, static_cast<off_t>(from + done));
    if (got < 0 && errno != EINTR) throw Error(cannot_be_read(path_, errno));
    if (got == 0)
      throw Error(path_.string() + ": became shorter while it was read: expected " + std::to_string(size_) +
                  " bytes, got " + std::to_string(from + done));
    if (got > 0) done += static_cast<std::uint64_t>(got);
  }
}

std::string OpenFile::bytes(std::uint64_t from, std::uint64_t count) const {
  std::string buffer;
  read(from, count, buffer);
  return buffer;
}

namespace {

namespace fs = std::filesystem;

constexpr std::string_view hidden_prefix = ".attnscope-";
constexpr std::size_t random_bytes = 8;

bool is_hidden_name(std::string_view name) {
  return name.size() == hidden_prefix.size() + 2 * random_bytes && name.starts_with(hidden_prefix) &&
         name.find_first_not_of(text::hexadecimal_digits, hidden_prefix.size()) == name.npos;
}

/// "." where a path names no folder.
fs::path folder_or_here(const fs::path& folder) {
  return folder.empty() ? fs::path(".") : folder;
}

/// Whether the file that is open still has a name.
bool has_a_name(int descriptor) {
  struct stat about;
  return ::fstat(descriptor, &about) == 0 && about.st_nlink > 0;
}

void remove_when_left(const fs::path& path) {
  const Descriptor left(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  struct stat about;
  if (left.number() < 0 || ::fstat(left.number(), &about) != 0 || about.st_uid != ::geteuid()) return;
  if (!S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode)) return;
  if (::flock(left.number(), LOCK_EX | LOCK_NB) != 0) return;  // somebody writes it
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

}  // namespace

std::string random_name() {
  char bytes[random_bytes];
  if (::getrandom(bytes, sizeof bytes, 0) != sizeof bytes) throw Error("the system gives no random numbers");
  return text::hexadecimal(std::string_view(bytes, sizeof bytes));
}

Unfinished::Unfinished(const fs::path& folder, Kind kind, const fs::path& shown) : Unfinished() {
  for (;;) {
    fs::path path = folder / (std::string(hidden_prefix) + random_name());
    const bool is_folder = kind == Kind::folder;
    if (is_folder && ::mkdir(path.c_str(), 0700) != 0) throw Error(cannot_be_written(shown, errno));
    if (is_folder) path_ = std::move(path);
    const fs::path& open_at = is_folder ? path_ : path;
    const int flags = is_folder ? O_RDONLY | O_DIRECTORY : O_WRONLY | O_CREAT | O_EXCL;
    Descriptor made(::open(open_at.c_str(), flags | O_CLOEXEC, 0666));
    if (made.number() < 0) throw Error(cannot_be_written(shown, errno));
    if (!is_folder) path_ = std::move(path);
    // Where a file system has no locks nothing is swept either.
    if (::flock(made.number(), LOCK_EX) != 0 || has_a_name(made.number())) {
      descriptor_.reset(made.release());
      return;
    }  // else somebody swept it in the moment before it was locked
  }
}

Unfinished::~Unfinished() {
  if (path_.empty()) return;
  std::error_code error;
  if (fs::remove(path_, error)) return;  // which takes no memory: there may be none
  try {
    fs::remove_all(path_, error);    // somebody has put something into it
  } catch (const std::exception&) {  // it is swept at the next write
  }
}

int Unfinished::move_to(const fs::path& target) {
  if (::rename(path_.c_str(), target.c_str()) != 0) return errno;
  path_.clear();
  return 0;
}

void sweep(const fs::path& folder) {
  for (const fs::path& path : list_folder(folder).paths)
    if (is_hidden_name(path.filename().native())) remove_when_left(path);
}

Descriptor open_folder(const fs::path& folder) {
  return Descriptor(::open(folder_or_here(folder).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

namespace fs = std::filesystem;

Staging::Leftovers::~Leftovers() {
  std::error_code ignored;
  for (auto path = paths.rbegin(); path != paths.rend(); ++path) fs::remove(*path, ignored);
}

void Staging::Leftovers::make_directory(const fs::path& path, const fs::path& shown) {
  std::error_code error;
  if (path.empty() || fs::is_directory(path, error)) return;
  make_directory(path.parent_path(), shown);
  if (!path.has_filename()) return;  // "a/b/" is the directory "a/b"
  fs::path made = path;
  paths.reserve(paths.size() + 1);  // what was made is taken down whatever memory there is
  if (fs::create_directory(path, error))
    paths.push_back(std::move(made));
  else if (error)
    throw Error(cannot_be_written(shown, error.value() == EEXIST ? ENOTDIR : error.value()));
  else if (!fs::is_directory(path, error))
    throw Error(cannot_be_written(shown, ENOTDIR));
}

Staging::Staging(const fs::path& directory) : directory_(directory) {
  leftovers_.make_directory(directory_, directory_);
  sweep(directory_);
  waiting_.emplace(directory_, Unfinished::Kind::folder, directory_);
}

void Staging::add(const fs::path& name, std::string_view content) {
  held_.check();
  const fs::path path = waiting_->path() / name;
  inside_.make_directory(path.parent_path(), directory_);
  inside_.paths.push_back(path);
  write_new_file(path, content, directory_ / name);
  names_.push_back(name);
}

std::vector<fs::path> Staging::keep() {
  std::error_code error;
  std::vector<fs::path> sources, targets;
  std::set<fs::path> folders;
  for (const fs::path& name : names_) {
    held_.check();
    sources.push_back(waiting_->path() / name);
    targets.push_back(directory_ / name);
    const fs::path folder = targets.back().parent_path();
    leftovers_.make_directory(folder, directory_);
    folders.insert(folder);
    if (fs::is_directory(targets.back(), error)) throw Error(cannot_be_written(targets.back(), EISDIR));
    const Descriptor file(::open(sources.back().c_str(), O_RDONLY | O_CLOEXEC));
    // What replaces a file is for those who could read that.
    struct stat old;
    if (file.number() >= 0 && ::stat(targets.back().c_str(), &old) == 0) {
      // Where neither owner nor group can be given, its mode would be for others than it was.
      const bool is_theirs = has_owner_of(file.number(), old) ||
                             ::fchown(file.number(), static_cast<uid_t>(-1), old.st_gid) == 0;
      if (is_theirs && ::fchmod(file.number(), old.st_mode & 0777) != 0)
        throw Error(cannot_be_written(targets.back(), errno));
    }
    if (file.number() < 0 || ::fsync(file.number()) != 0)
      throw Error(cannot_be_written(targets.back(), errno));
  }
  std::vector<Descriptor> open_folders;
  for (const fs::path& folder : folders) open_folders.push_back(open_folder(folder));
  // From here on nothing takes memory, which might end between two files.
  for (std::size_t k = 0; k < targets.size(); ++k) {
    if (::rename(sources[k].c_str(), targets[k].c_str()) == 0) continue;
    throw Error(cannot_be_written(targets[k], errno) +
                (k == 0 ? ""
                        : "; " + std::to_string(k) + " of " + std::to_string(targets.size()) +
                              " files are there, up to " + targets[k - 1].filename().string()));
  }
  for (const Descriptor& folder : open_folders) ::fsync(folder.number());
  return targets;
}

namespace {

struct Closing {
  void operator()(DIR* open) const { ::closedir(open); }
};

}  // namespace

Listing list_folder(const std::filesystem::path& folder) {
  const std::unique_ptr<DIR, Closing> open(::opendir(folder.empty() ? "." : folder.c_str()));
  if (!open) return {{}, errno};
  Listing listing;
  for (;;) {
    errno = 0;
    const dirent* const entry = ::readdir(open.get());
    if (!entry) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") listing.paths.push_back(folder / name);
  }
  listing.error = errno;
  std::ranges::sort(listing.paths);
  return listing;
}

namespace {

namespace fs = std::filesystem;

/// The folder around a snapshot of Hugging Face's cache, whose files are links to blobs beside it:
/// models--gpt2/snapshots/1a2b/model.safetensors leads to models--gpt2/blobs/3c4d. Else the folder itself.
fs::path with_blobs(const fs::path& folder) {
  for (fs::path snapshot = folder; snapshot.has_relative_path(); snapshot = snapshot.parent_path())
    if (const fs::path model = snapshot.parent_path().parent_path();
        snapshot.parent_path().filename() == "snapshots" && model.filename().native().starts_with("models--"))
      return model;
  return folder;
}

bool leads_into(const fs::path& path, const fs::path& home) {
  std::error_code error;
  const fs::path end = fs::weakly_canonical(fs::absolute(path, error), error);
  return !error && std::ranges::mismatch(home, end).in1 == home.end();
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

/// A link in a folder, or in a folder in it, that leads out of home; the folder itself where it cannot be
/// read; "" without one.
///
/// Of tensors of several sequences each has a folder, sequence0 and so on; no reader looks into others. One
/// that cannot be listed is not read either.
fs::path link_out(const fs::path& folder, const fs::path& home, bool has_folders = true) {
  const Listing listing = list_folder(folder);
  for (const fs::path& entry : listing.paths) {
    std::error_code ignored;
    if (fs::is_symlink(entry, ignored) && !leads_into(entry, home)) return entry;
    if (!has_folders || !entry.filename().native().starts_with("sequence") || !is_folder(entry)) continue;
    if (const fs::path out = link_out(entry, home, false); !out.empty() && out != entry) return out;
  }
  return listing.error != 0 ? folder : fs::path();
}

fs::path home_of(const fs::path& folder, std::error_code& error) {
  return with_blobs(fs::weakly_canonical(folder.empty() ? fs::path(".") : folder, error));
}

}  // namespace

bool lies_beside(const fs::path& path, const fs::path& folder) {
  if (!path.is_relative() || std::ranges::find(path, "..") != path.end()) return false;
  std::error_code error;
  const fs::path home = home_of(folder, error);
  if (error || !leads_into(folder / path, home)) return false;
  return !is_folder(folder / path) || link_out(folder / path, home).empty();
}

std::string leading_words(const fs::path& path, const fs::path& folder) {
  std::error_code error;
  const fs::path home = home_of(folder, error);
  // "" where the name says it already.
  const auto end_of = [&error](const fs::path& named) {
    const fs::path end = fs::weakly_canonical(fs::absolute(named, error), error);
    return end == fs::absolute(named, error).lexically_normal() ? "" : json_quoted(end.string());
  };
  std::string words;
  if (!leads_into(folder / path, home)) {
    if (const std::string end = end_of(folder / path); !end.empty()) words = ", which leads to " + end + ",";
  } else if (is_folder(folder / path)) {
    const fs::path out = link_out(folder / path, home), within = out.lexically_relative(folder / path);
    if (within == ".")
      words = ", which cannot be looked into,";
    else if (!out.empty())
      words = ", in which " + json_quoted(within.string()) + " leads to " + end_of(out) + ",";
  }
  return error ? "" : words;
}

void throw_without_contents(const std::string& place, const fs::path& path, const fs::path& folder) {
  try {
    throw;
  } catch (const Stopped&) {
    throw;
  } catch (const Outside&) {
    throw;
  } catch (const Error&) {
    std::error_code error;
    if (lies_beside(path, folder) || !fs::exists(folder / path, error)) throw;
    throw Error(
        place + quoted_briefly(path.string()) +
        " cannot be used as the session wants it; it does not lie beside the session, so nothing of what "
        "it holds is quoted: open it by itself to see why");
  }
}

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
