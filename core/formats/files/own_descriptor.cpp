#include "core/formats/files/own_descriptor.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <vector>

#include "core/error.hpp"
#include "core/formats/files/file.hpp"
#include "core/text/number.hpp"

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

}  // namespace

std::optional<int> own_descriptor(const fs::path& path) {
  constexpr std::array names{"/dev/stdin", "/dev/stdout", "/dev/stderr"};
  for (std::size_t k = 0; k < names.size(); ++k)
    if (path == names[k]) return static_cast<int>(k);
  const fs::path folder = path.parent_path();
  if (folder != "/dev/fd" && folder != "/proc/self/fd") return std::nullopt;
  const auto number = text::parse_whole_number(path.filename().native());
  return number && *number < 1 << 20 ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

void read_pipe_whole(const fs::path& path) {
  const auto number = own_descriptor(path);
  struct stat about;
  if (!number || ::fstat(*number, &about) != 0 || !(S_ISFIFO(about.st_mode) || S_ISSOCK(about.st_mode)))
    return;
  const Descriptor file = nameless_file();
  if (file.number() < 0) throw Error(cannot_be_read(path, errno));
  std::vector<char> bytes(1 << 18);
  for (;;) {
    const ssize_t got = ::read(*number, bytes.data(), bytes.size());
    if (got == 0) break;
    if (got < 0 && errno != EINTR) throw Error(cannot_be_read(path, errno));
    if (got < 0) continue;
    if (const int error = write_all(file.number(), {bytes.data(), static_cast<std::size_t>(got)}))
      throw Error(cannot_be_read(path, error));
  }
  if (::lseek(file.number(), 0, SEEK_SET) != 0 || ::dup2(file.number(), *number) < 0)
    throw Error(cannot_be_read(path, errno));
}

}  // namespace core::formats
