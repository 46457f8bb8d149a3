#include "core/formats/readers/zip.hpp"

#include <zlib.h>

#include <algorithm>
#include <vector>

#include "core/error.hpp"
#include "core/formats/json.hpp"

namespace core::formats::readers {
namespace {

using std::uint64_t;

constexpr std::size_t block = std::size_t{1} << 18;

[[noreturn]] void fail(const MappedFile& archive, const ZipMember& member, const std::string& what) {
  throw Error(archive.path().string() + ": " + quoted_briefly(member.name) + ": damaged: " + what);
}

/// zlib's state, given back with its owner.
class Inflater {
 public:
  Inflater() {
    if (inflateInit2(&stream_, -MAX_WBITS) != Z_OK) throw std::bad_alloc();  // nothing else can fail here
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream_); }
  z_stream& stream() { return stream_; }

 private:
  z_stream stream_{};
};

/// Hands the content of a member to take, block by block, until it says that it has enough.
///
/// Gives whether all of it was handed over; throws core::Error when the content is longer or shorter than it
/// claims.
template <class Take>
bool unpack(const MappedFile& archive, const ZipMember& member, Take take) {
  if (!member.deflated) {
    for (uint64_t at = 0; at < member.size; at += block)
      if (!take(archive.bytes(member.begin + at, std::min<uint64_t>(block, member.size - at)))) return false;
    return true;
  }
  Inflater inflater;
  z_stream& stream = inflater.stream();
  std::vector<char> out(block);
  uint64_t read = 0, made = 0;
  for (int state = Z_OK; state != Z_STREAM_END;) {
    if (stream.avail_in == 0) {
      const std::string_view in =
          archive.bytes(member.begin + read, std::min<uint64_t>(block, member.packed - read));
      read += in.size();
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));  // zlib does not write to it
      stream.avail_in = static_cast<uInt>(in.size());
    }
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    state = inflate(&stream, Z_NO_FLUSH);
    const std::size_t n = out.size() - stream.avail_out;
    if (state != Z_OK && state != Z_STREAM_END) fail(archive, member, "it cannot be unpacked");
    if (state == Z_OK && n == 0 && read == member.packed) fail(archive, member, "it ends too early");
    made += n;
    if (made > member.size)
      fail(archive, member,
           "it unpacks to more than the " + std::to_string(member.size) + " bytes that it claims");
    if (n > 0 && !take(std::string_view(out.data(), n))) return false;
  }
  if (made < member.size)
    fail(archive, member,
         "it unpacks to " + std::to_string(made) + " bytes and claims " + std::to_string(member.size));
  return true;
}

}  // namespace

std::string zip_begin(const MappedFile& archive, const ZipMember& member, uint64_t count) {
  std::string begin;
  unpack(archive, member, [&](std::string_view bytes) {
    begin += bytes.substr(0, count - begin.size());
    return begin.size() < count;
  });
  return begin;
}

std::string zip_bytes(const MappedFile& archive, const ZipMember& member, uint64_t from, uint64_t count,
                      ZipCheck check, Progress& progress) {
  std::string wanted;
  wanted.reserve(count);
  uint64_t at = 0;
  uLong checksum = crc32(0, nullptr, 0);
  unpack(archive, member, [&](std::string_view bytes) {
    progress.add(0);
    if (check == ZipCheck::all)
      checksum =
          crc32(checksum, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size()));
    const uint64_t begin = std::clamp<uint64_t>(from, at, at + bytes.size());
    const uint64_t end = std::clamp<uint64_t>(from + count, at, at + bytes.size());
    wanted += bytes.substr(begin - at, end - begin);
    at += bytes.size();
    return check == ZipCheck::all || at < from + count;
  });
  if (check == ZipCheck::all && checksum != member.checksum)
    fail(archive, member, "its checksum is not the one that the archive gives");
  return wanted;
}

}  // namespace core::formats::readers
