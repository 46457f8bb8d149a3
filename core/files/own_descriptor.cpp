#include "core/files/own_descriptor.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/files/file.hpp"

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

}  // namespace core::formats
