#include "core/formats/writers/zip_writer.hpp"

#include <zlib.h>

#include <limits>
#include <memory>

#include "core/error.hpp"
#include "core/formats/files/little_endian.hpp"

namespace core::formats {
namespace {

constexpr std::uint16_t stored = 0, deflated = 8;
constexpr std::uint16_t version = 20;  // 2.0: the first that knows deflate
constexpr std::uint16_t names_are_utf8 = 1 << 11;
constexpr std::uint16_t midnight = 0, first_day = 33;  // 1 January 1980
constexpr std::size_t largest = std::numeric_limits<std::uint32_t>::max();

/// Deflated without the header of zlib, as zip has it.
std::string deflated_bytes(std::string_view content) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::bad_alloc();
  const std::unique_ptr<z_stream, int (*)(z_stream*)> owner(&stream, deflateEnd);
  std::string packed(deflateBound(&stream, content.size()), '\0');
  // zlib's interface is older than const.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) throw std::bad_alloc();
  packed.resize(stream.total_out);
  return packed;
}

}  // namespace

void ZipWriter::add(const std::string& name, std::string_view content) {
  const Error too_large(name + ": too large: a zip archive holds less than 4 GiB");
  if (content.size() >= largest / 2) throw too_large;  // deflateBound() must stay below the limit as well
  const std::string packed = deflated_bytes(content);
  const bool shorter = packed.size() < content.size();
  const std::string_view data = shorter ? std::string_view(packed) : content;
  constexpr std::size_t headers = 46 + 30 + 22;
  if (bytes_.size() + data.size() + (entries_.size() + 1) * (headers + 2 * name.size()) >= largest)
    throw too_large;
  const auto* first = reinterpret_cast<const Bytef*>(content.data());
  const Entry e{name,
                static_cast<std::uint32_t>(crc32_z(crc32_z(0, nullptr, 0), first, content.size())),
                static_cast<std::uint32_t>(data.size()),
                static_cast<std::uint32_t>(content.size()),
                static_cast<std::uint32_t>(bytes_.size()),
                shorter ? deflated : stored};
  append_little_endian(bytes_, std::uint32_t{0x04034b50});  // "PK\3\4"
  for (const std::uint16_t field : {version, names_are_utf8, e.method, midnight, first_day})
    append_little_endian(bytes_, field);
  for (const std::uint32_t field : {e.checksum, e.packed_size, e.size}) append_little_endian(bytes_, field);
  append_little_endian(bytes_, static_cast<std::uint16_t>(name.size()));
  append_little_endian(bytes_, std::uint16_t{0});
  bytes_.append(name).append(data);
  entries_.push_back(e);
}

std::string ZipWriter::finished() const {
  std::string bytes = bytes_;
  for (const Entry& e : entries_) {
    append_little_endian(bytes, std::uint32_t{0x02014b50});  // "PK\1\2"
    for (const std::uint16_t field : {version, version, names_are_utf8, e.method, midnight, first_day})
      append_little_endian(bytes, field);
    for (const std::uint32_t field : {e.checksum, e.packed_size, e.size}) append_little_endian(bytes, field);
    append_little_endian(bytes, static_cast<std::uint16_t>(e.name.size()));
    for (int unused = 0; unused < 4; ++unused) append_little_endian(bytes, std::uint16_t{0});
    append_little_endian(bytes, std::uint32_t{0600} << 16);  // who may read what is unpacked
    append_little_endian(bytes, e.offset);
    bytes += e.name;
  }
  const auto count = static_cast<std::uint16_t>(entries_.size());
  append_little_endian(bytes, std::uint32_t{0x06054b50});  // "PK\5\6"
  for (const std::uint16_t field : {std::uint16_t{0}, std::uint16_t{0}, count, count})
    append_little_endian(bytes, field);
  append_little_endian(bytes, static_cast<std::uint32_t>(bytes.size() - 12 - bytes_.size()));
  append_little_endian(bytes, static_cast<std::uint32_t>(bytes_.size()));
  append_little_endian(bytes, std::uint16_t{0});
  return bytes;
}

}  // namespace core::formats
