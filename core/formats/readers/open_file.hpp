#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>

namespace core::formats::readers {

/// A regular file mapped into memory, so that only the pages that are looked at are read.
class MappedFile {
 public:
  /// Throws core::Error when the path is no file that can be read.
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  const std::filesystem::path& path() const { return path_; }
  std::uint64_t size() const { return size_; }

  /// The bytes from … from + count − 1, which must lie within size().
  ///
  /// Throws core::Error when the file has been cut short since it was opened, as a look beyond its end would
  /// end the program.
  std::string_view bytes(std::uint64_t from, std::uint64_t count) const;

 private:
  std::filesystem::path path_;
  int descriptor_;
  std::uint64_t size_ = 0;
  const char* begin_ = nullptr;
};

/// A mapping that all tensors of a file share.
using Mapping = std::shared_ptr<const MappedFile>;

}  // namespace core::formats::readers
