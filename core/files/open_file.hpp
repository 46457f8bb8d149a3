#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "core/files/file.hpp"

namespace core::formats {

/// A regular file that is open, of which any part can be read; several threads may read it at once.
///
/// It is read and never mapped: a look at a page that somebody has cut off would end the program.
class OpenFile {
 public:
  /// Whether it is open from now on, or only while something is read: of an export there are more files than
  /// a process may have open.
  enum class Keeps { open, closed };

  /// Throws core::Error when the path is no regular file that can be read.
  explicit OpenFile(const std::filesystem::path& path, Keeps keeps = Keeps::open);

  const std::filesystem::path& path() const { return path_; }
  /// Bytes that it had when it was opened.
  std::uint64_t size() const { return size_; }

  /// Puts the bytes from … from + count − 1, which must lie within size(), into buffer.
  ///
  /// Throws core::Error when the file has become shorter since it was opened, is another by now, or cannot be
  /// read.
  void read(std::uint64_t from, std::uint64_t count, std::string& buffer) const;

  /// The same bytes.
  std::string bytes(std::uint64_t from, std::uint64_t count) const;

 private:
  std::filesystem::path path_;
  Descriptor descriptor_;
  std::uint64_t size_ = 0, device_ = 0, number_ = 0;
};

}  // namespace core::formats
