#include "core/files/open_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>

#include "core/base/error.hpp"
#include "core/files/file.hpp"

namespace core::formats {

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

}  // namespace core::formats
