#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/formats/readers/open_file.hpp"
#include "core/token.hpp"

namespace core::formats::readers {

/// A file in a ZIP archive, stored or deflated.
struct ZipMember {
  std::string name;
  bool deflated = false;
  std::uint32_t checksum = 0;           ///< CRC-32 of the content
  std::uint64_t begin = 0, packed = 0;  ///< where its bytes are in the archive, and how many
  std::uint64_t size = 0;               ///< of the content
};

/// Whether bytes begin as a ZIP archive does.
bool looks_like_zip(std::string_view begin);

/// The members of an archive, with or without 64-bit sizes.
///
/// Throws core::Error when the archive is damaged or encrypted, members share bytes or names, or one claims
/// to be longer than its packed bytes could become. Source: PKWARE, APPNOTE.TXT 6.3.9.
std::vector<ZipMember> zip_members(const OpenFile& archive);

/// The first count bytes of a member, not checked yet; fewer when it is shorter.
std::string zip_begin(const OpenFile& archive, const ZipMember& member, std::uint64_t count);

/// Places in a member at which unpacking can begin, so that parts of it need no more than what lies between
/// two of them; some 40 KB each, at most 256. Several threads may use them at once.
struct ZipMarks;

/// The bytes from … from + count − 1 of a member, of which no more than these are held in memory.
///
/// Without marks it is unpacked to its end, which its checksum must fit, and marks is set; later parts of the
/// member are unpacked from the mark before them.
std::string zip_bytes(const OpenFile& archive, const ZipMember& member, std::uint64_t from,
                      std::uint64_t count, std::shared_ptr<const ZipMarks>& marks, const Token& progress);

}  // namespace core::formats::readers
