#include "core/formats/readers/zip.hpp"

#include <zlib.h>

#include <algorithm>
#include <iterator>
#include <new>
#include <vector>

#include "core/error.hpp"
#include "core/formats/files/json.hpp"

namespace core::formats::readers {
namespace {

using std::uint64_t;

constexpr std::size_t block = std::size_t{1} << 18;

[[noreturn]] void fail(const OpenFile& archive, const ZipMember& member, const std::string& what) {
  throw Error(archive.path().string() + ": " + quoted_briefly(member.name) + ": damaged: " + what);
}

/// zlib's state, given back with its owner.
class Inflater {
 public:
  Inflater() {
    if (inflateInit2(&stream_, -MAX_WBITS) != Z_OK) throw std::bad_alloc();  // nothing else can fail here
  }
  Inflater(const Inflater& other) {
    // zlib only reads from what it copies.
    if (inflateCopy(&stream_, const_cast<z_stream*>(&other.stream_)) != Z_OK) throw std::bad_alloc();
  }
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream_); }
  z_stream& stream() { return stream_; }

 private:
  z_stream stream_{};
};

/// How far unpacking is, and zlib's state there.
struct Place {
  uint64_t read = 0, made = 0;  ///< bytes of the packed and of the unpacked content
  Inflater inflater = {};
};

constexpr uint64_t least_between_marks = uint64_t{1} << 22, most_marks = 256;

/// Hands the content of a member to take, with where it begins, block by block from a place on, until it says
/// that it has enough. reached is called with the place after each block.
///
/// Throws core::Error when the content is longer or shorter than it claims.
template <class Take, class Reached>
void inflate_from(Place now, const OpenFile& archive, const ZipMember& member, Take take, Reached reached) {
  z_stream& stream = now.inflater.stream();
  stream.avail_in = 0;
  std::vector<char> out(block);
  std::string in;
  for (int state = Z_OK; state != Z_STREAM_END;) {
    if (stream.avail_in == 0) {
      archive.read(member.begin + now.read, std::min<uint64_t>(block, member.packed - now.read), in);
      now.read += in.size();
      stream.next_in = reinterpret_cast<Bytef*>(in.data());
      stream.avail_in = static_cast<uInt>(in.size());
    }
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    state = inflate(&stream, Z_NO_FLUSH);
    const std::size_t n = out.size() - stream.avail_out;
    if (state != Z_OK && state != Z_STREAM_END) fail(archive, member, "it cannot be unpacked");
    if (state == Z_OK && n == 0 && now.read == member.packed) fail(archive, member, "it ends too early");
    now.made += n;
    if (now.made > member.size)
      fail(archive, member,
           "it unpacks to more than the " + std::to_string(member.size) + " bytes that it claims");
    if (n > 0 && !take(std::string_view(out.data(), n), now.made - n)) return;
    reached(now);
  }
  if (now.made < member.size)
    fail(archive, member,
         "it unpacks to " + std::to_string(now.made) + " bytes and claims " + std::to_string(member.size));
}

/// The content of a member from its begin.
template <class Take, class Reached>
void unpack(const OpenFile& archive, const ZipMember& member, Take take, Reached reached) {
  if (member.deflated) return inflate_from({}, archive, member, take, reached);
  for (uint64_t at = 0; at < member.size; at += block)
    if (!take(archive.bytes(member.begin + at, std::min<uint64_t>(block, member.size - at)), at)) return;
}

/// Those of the bytes that begin at a place of the content which are among from … from + count − 1.
std::string_view part_of(std::string_view bytes, uint64_t at, uint64_t from, uint64_t count) {
  const uint64_t begin = std::clamp<uint64_t>(from, at, at + bytes.size());
  const uint64_t end = std::clamp<uint64_t>(from + count, at, at + bytes.size());
  return bytes.substr(begin - at, end - begin);
}

}  // namespace

struct ZipMarks {
  std::vector<Place> places;  ///< none of a member that is stored
};

std::string zip_begin(const OpenFile& archive, const ZipMember& member, uint64_t count) {
  std::string begin;
  unpack(
      archive, member,
      [&](std::string_view bytes, uint64_t) {
        begin += bytes.substr(0, count - begin.size());
        return begin.size() < count;
      },
      [](const Place&) {});
  return begin;
}

std::string zip_bytes(const OpenFile& archive, const ZipMember& member, uint64_t from, uint64_t count,
                      std::shared_ptr<const ZipMarks>& marks, const Token& progress) {
  std::string wanted;
  wanted.reserve(count);
  if (marks) {  // it is known to be sound
    const auto after = std::ranges::upper_bound(marks->places, from, {}, &Place::made);
    const auto take = [&](std::string_view bytes, uint64_t at) {
      progress.add(0);
      wanted += part_of(bytes, at, from, count);
      return at + bytes.size() < from + count;
    };
    if (after == marks->places.begin())
      unpack(archive, member, take, [](const Place&) {});
    else
      inflate_from(*std::prev(after), archive, member, take, [](const Place&) {});
    return wanted;
  }
  auto found = std::make_shared<ZipMarks>();
  const uint64_t between = std::max(least_between_marks, member.size / most_marks);
  uLong checksum = crc32(0, nullptr, 0);
  unpack(
      archive, member,
      [&](std::string_view bytes, uint64_t at) {
        progress.add(0);
        checksum =
            crc32(checksum, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size()));
        wanted += part_of(bytes, at, from, count);
        return true;
      },
      [&](const Place& now) {
        const uint64_t last = found->places.empty() ? 0 : found->places.back().made;
        if (now.made < last + between || now.made == member.size) return;
        found->places.push_back(now);
        Place& mark = found->places.back();
        mark.read -= mark.inflater.stream().avail_in;  // what was fetched and is not used yet
      });
  if (checksum != member.checksum)
    fail(archive, member, "its checksum is not the one that the archive gives");
  marks = std::move(found);
  return wanted;
}

}  // namespace core::formats::readers
