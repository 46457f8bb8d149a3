#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace core::formats {

/// A zip archive that grows file by file, each deflated, or stored where that is shorter.
///
/// The same files give the same bytes: times are the earliest that the format knows, as NumPy writes them.
/// Source: PKWARE APPNOTE 6.3, without the extensions for archives of 4 GiB and more.
class ZipWriter {
 public:
  /// Throws core::Error when the file or the archive would be too large for the format.
  void add(const std::string& name, std::string_view content);

  /// The whole archive.
  std::string finished() const;

 private:
  struct Entry {
    std::string name;
    std::uint32_t checksum, packed_size, size, offset;
    std::uint16_t method;
  };
  std::string bytes_;
  std::vector<Entry> entries_;
};

}  // namespace core::formats
