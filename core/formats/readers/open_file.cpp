#include "core/formats/readers/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>

#include "core/error.hpp"
#include "core/formats/file.hpp"

namespace core::formats::readers {

MappedFile::MappedFile(const std::filesystem::path& path)
    : path_(path), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (descriptor_ < 0) throw Error(cannot_be_read(path, errno));
  const auto fail = [&](const std::string& message) {
    ::close(descriptor_);
    throw Error(message);
  };
  struct stat about;
  if (::fstat(descriptor_, &about) != 0) fail(cannot_be_read(path, errno));
  if (S_ISDIR(about.st_mode)) fail(cannot_be_read(path, EISDIR));
  if (!S_ISREG(about.st_mode)) fail(path.string() + ": expected a regular file, got a device or pipe");
  size_ = static_cast<std::uint64_t>(about.st_size);
  if (size_ == 0) return;
  void* begin = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor_, 0);
  if (begin == MAP_FAILED) fail(cannot_be_read(path, errno));
  begin_ = static_cast<const char*>(begin);
}

MappedFile::~MappedFile() {
  if (begin_) ::munmap(const_cast<char*>(begin_), size_);
  ::close(descriptor_);
}

std::string_view MappedFile::bytes(std::uint64_t from, std::uint64_t count) const {
  assert(from <= size_ && count <= size_ - from);
  struct stat about;
  if (::fstat(descriptor_, &about) != 0 || static_cast<std::uint64_t>(about.st_size) < from + count)
    throw Error(path_.string() + ": the file has been cut short since it was opened");
  return {begin_ + from, count};
}

}  // namespace core::formats::readers
