#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "core/error.hpp"
#include "core/formats/files/json.hpp"
#include "core/formats/readers/zip.hpp"

namespace core::formats::readers {
namespace {

using std::uint64_t;

constexpr uint64_t end_size = 22, end64_size = 56, locator_size = 20, entry_size = 46, local_size = 30;
constexpr uint64_t longest_comment = 0xffff, unset16 = 0xffff, unset32 = 0xffffffff;
constexpr uint64_t most_members = 1 << 20;
constexpr uint64_t largest_ratio = 1032;  // of deflate: 258 bytes from 2 bits

/// Numbers and texts read one after the other, never beyond the end.
class Cursor {
 public:
  Cursor(std::string_view bytes, const std::string& place) : bytes_(bytes), place_(&place) {}
  uint64_t number(int n_bytes) {
    const std::string_view part = text(static_cast<uint64_t>(n_bytes));
    uint64_t value = 0;
    for (std::size_t k = part.size(); k-- > 0;) value = value << 8 | static_cast<unsigned char>(part[k]);
    return value;
  }
  std::string_view text(uint64_t n_bytes) {
    if (n_bytes > bytes_.size()) throw Error(*place_ + "damaged ZIP archive: a record ends too early");
    const std::string_view part = bytes_.substr(0, n_bytes);
    bytes_.remove_prefix(n_bytes);
    return part;
  }
  void skip(uint64_t n_bytes) { text(n_bytes); }
  bool at_end() const { return bytes_.empty(); }

 private:
  std::string_view bytes_;
  const std::string* place_;
};

struct Directory {
  uint64_t begin, size, n_members;
  uint64_t end;  ///< where the records after the directory begin; no member reaches so far
};

class Archive {
 public:
  explicit Archive(const OpenFile& file) : file_(file), place_(file.path().string() + ": ") {}

  std::vector<ZipMember> members() const {
    const Directory d = directory();
    if (d.begin > d.end || d.size > d.end - d.begin) fail("its directory reaches beyond it");
    if (d.n_members > most_members || d.n_members * entry_size > d.size)
      fail("it claims " + std::to_string(d.n_members) + " members in a directory of " +
           std::to_string(d.size) + " bytes");
    const std::string directory_bytes = file_.bytes(d.begin, d.size);
    Cursor cursor(directory_bytes, place_);
    std::vector<ZipMember> found;
    std::vector<std::pair<uint64_t, uint64_t>> ranges;
    std::set<std::string> names;
    for (uint64_t k = 0; k < d.n_members; ++k) {
      ZipMember m = member(cursor, d.begin, ranges);
      if (!names.insert(m.name).second) fail("two members are called " + quoted_briefly(m.name));
      found.push_back(std::move(m));
    }
    std::ranges::sort(ranges);
    for (std::size_t k = 1; k < ranges.size(); ++k)
      if (ranges[k].first < ranges[k - 1].second) fail("two of its members share bytes");
    return found;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(place_ + "damaged ZIP archive: " + what);
  }

  /// Where the record at the end of the archive begins, which only a comment may follow.
  uint64_t find_end() const {
    const uint64_t size = file_.size();
    if (size < end_size) fail("it ends too early");
    const uint64_t length = std::min(size, end_size + longest_comment);
    const std::string all = file_.bytes(size - length, length);
    const std::string_view tail = all;
    for (std::size_t at = tail.rfind("PK\5\6"); at != tail.npos;
         at = at == 0 ? tail.npos : tail.rfind("PK\5\6", at - 1)) {
      if (tail.size() - at < end_size) continue;
      Cursor comment(tail.substr(at + end_size - 2), place_);
      if (comment.number(2) == tail.size() - at - end_size) return size - length + at;
    }
    fail("its directory is missing, it may have been cut short");
  }

  Directory directory() const {
    const uint64_t end = find_end();
    const std::string bytes = file_.bytes(end, end_size);
    Cursor cursor(bytes, place_);
    cursor.skip(4);
    const uint64_t disk = cursor.number(2), directory_disk = cursor.number(2), here = cursor.number(2);
    Directory d{};
    d.end = end;
    d.n_members = cursor.number(2);
    d.size = cursor.number(4);
    d.begin = cursor.number(4);
    const bool is_64 = end >= locator_size && file_.bytes(end - locator_size, 4) == "PK\6\7";
    if (is_64) return directory64(end - locator_size);
    if (disk != 0 || directory_disk != 0 || here != d.n_members) fail("it is one of several parts");
    return d;
  }

  Directory directory64(uint64_t locator) const {
    const std::string bytes = file_.bytes(locator, locator_size);
    Cursor cursor(bytes, place_);
    cursor.skip(8);
    const uint64_t at = cursor.number(8);
    if (locator < end64_size || at > locator - end64_size || file_.bytes(at, 4) != "PK\6\6")
      fail("its 64-bit directory is not where it should be");
    const std::string record_bytes = file_.bytes(at, end64_size);
    Cursor record(record_bytes, place_);
    record.skip(32);
    Directory d{};
    d.end = at;
    d.n_members = record.number(8);
    d.size = record.number(8);
    d.begin = record.number(8);
    return d;
  }

  ZipMember member(Cursor& cursor, uint64_t directory,
                   std::vector<std::pair<uint64_t, uint64_t>>& ranges) const {
    if (cursor.text(4) != "PK\1\2") fail("an entry of its directory is not one");
    ZipMember m;
    cursor.skip(4);
    const uint64_t flags = cursor.number(2), method = cursor.number(2);
    cursor.skip(4);
    m.checksum = static_cast<std::uint32_t>(cursor.number(4));
    m.packed = cursor.number(4);
    m.size = cursor.number(4);
    const uint64_t name_length = cursor.number(2), extra_length = cursor.number(2),
                   comment_length = cursor.number(2);
    cursor.skip(8);
    uint64_t local = cursor.number(4);
    m.name = cursor.text(name_length);
    read_64_bit(cursor.text(extra_length), m.size, m.packed, local);
    cursor.skip(comment_length);

    const std::string shown = quoted_briefly(m.name);
    if ((flags & 1) != 0) throw Error(place_ + shown + " is encrypted");
    if (method != 0 && method != 8)
      throw Error(place_ + shown + ": expected it stored or deflated, got method " + std::to_string(method));
    m.deflated = method == 8;
    if (!m.deflated && m.size != m.packed) fail(shown + " is stored but has two sizes");
    if (m.size / largest_ratio > m.packed)
      fail(shown + " claims " + std::to_string(m.size) + " bytes in " + std::to_string(m.packed));
    if (local > directory || directory - local < local_size) fail(shown + " lies beyond its end");
    const std::string header_bytes = file_.bytes(local, local_size);
    Cursor header(header_bytes, place_);
    if (header.text(4) != "PK\3\4") fail(shown + " is not where its directory says");
    header.skip(22);
    const uint64_t lengths = header.number(2) + header.number(2);
    m.begin = local + local_size + lengths;
    if (m.begin > directory || m.packed > directory - m.begin) fail(shown + " reaches beyond its end");
    ranges.emplace_back(local, m.begin + m.packed);
    return m;
  }

  /// Sizes that do not fit 32 bits are in the field 1 of the extra ones, in this order, those that are needed
  /// alone.
  void read_64_bit(std::string_view extra, uint64_t& size, uint64_t& packed, uint64_t& local) const {
    for (Cursor fields(extra, place_); !fields.at_end();) {
      const uint64_t id = fields.number(2), length = fields.number(2);
      Cursor field(fields.text(length), place_);
      if (id != 1) continue;
      for (uint64_t* value : {&size, &packed, &local})
        if (*value == unset32) *value = field.number(8);
    }
  }

  const OpenFile& file_;
  std::string place_;
};

}  // namespace

bool looks_like_zip(std::string_view begin) {
  return begin.starts_with("PK\3\4") || begin.starts_with("PK\5\6");
}

std::vector<ZipMember> zip_members(const OpenFile& archive) {
  return Archive(archive).members();
}

}  // namespace core::formats::readers
