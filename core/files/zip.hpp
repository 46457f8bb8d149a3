#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/token.hpp"

struct zip;
struct zip_file;

namespace core::formats::readers {

/// A file in a ZIP archive.
struct ZipMember {
  std::string name;
  std::uint64_t index = 0, size = 0;  ///< place in the archive; bytes of its content
  bool deflated = false;              ///< or stored as it is
  std::string problem;                ///< why it cannot be read: "it is encrypted"; else ""
};

/// Whether bytes begin as a ZIP archive does.
bool looks_like_zip(std::string_view begin);

/// A ZIP archive that is open; several threads may read it, one after the other.
class ZipArchive {
 public:
  /// A member that is encrypted or packed in another way than deflate says so. Throws core::Error when the
  /// archive is damaged, or a member claims to be longer than its packed bytes could become.
  explicit ZipArchive(const std::filesystem::path& path);

  const std::vector<ZipMember>& members() const { return members_; }

  /// The first count bytes of a member, not checked yet; fewer when it is shorter.
  std::string begin(const ZipMember& member, std::uint64_t count) const;

  /// The bytes from … from + count − 1 of a member, of which no more than these are held in memory.
  ///
  /// The first time it is unpacked to its end, which its length and its checksum must fit. After that a part
  /// that follows the one before is unpacked alone, and any part of a member that is stored.
  std::string bytes(const ZipMember& member, std::uint64_t from, std::uint64_t count,
                    const Token& progress) const;

 private:
  struct Close {
    void operator()(zip* archive) const;
    void operator()(zip_file* file) const;
  };
  using File = std::unique_ptr<zip_file, Close>;

  [[noreturn]] void fail(const std::string& what) const;
  [[noreturn]] void fail(const ZipMember& member, const std::string& what) const;
  ZipMember member_at(std::uint64_t index) const;
  File opened(const ZipMember& member) const;
  void go_to(const ZipMember& member, std::uint64_t from) const;
  std::string unpacked(const ZipMember& member, std::uint64_t from, std::uint64_t count, std::uint64_t until,
                       const Token& progress) const;

  std::filesystem::path path_;
  std::unique_ptr<zip, Close> archive_;
  std::vector<ZipMember> members_;

  mutable std::mutex mutex_;                  ///< for what follows and libzip's state
  mutable std::set<std::uint64_t> checked_;   ///< members whose checksum is right
  mutable File file_;                         ///< the member that was read last
  mutable std::uint64_t index_ = 0, at_ = 0;  ///< which it is, and how far it has been read
};

}  // namespace core::formats::readers
