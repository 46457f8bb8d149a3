#include "core/files/zip.hpp"

#include <zip.h>

#include <algorithm>

#include "core/base/error.hpp"
#include "core/files/file.hpp"
#include "core/files/json.hpp"

namespace core::formats::readers {
namespace {

using std::uint64_t;

constexpr uint64_t block = uint64_t{1} << 18;
constexpr uint64_t most_members = 1 << 20;
constexpr uint64_t largest_ratio = 1032;  // of deflate: 258 bytes from 2 bits

std::string words_of(int code) {
  switch (code) {
    case ZIP_ER_NOZIP:
      return "its directory is missing, it may have been cut short";
    case ZIP_ER_EXISTS:
      return "two of its members have one name";
    case ZIP_ER_INCONS:
      return "its records contradict each other";
    case ZIP_ER_CRC:
      return "its checksum is not the one that the archive gives";
    case ZIP_ER_ZLIB:
    case ZIP_ER_COMPRESSED_DATA:
      return "it cannot be unpacked";
    case ZIP_ER_EOF:
      return "it ends too early";
  }
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  const std::string words = zip_error_strerror(&error);
  zip_error_fini(&error);
  return words;
}

std::string words_of(zip_file* file) {
  return words_of(zip_error_code_zip(zip_file_get_error(file)));
}

std::string words_of_lengths(uint64_t unpacked, uint64_t claimed) {
  return "it unpacks to " + std::to_string(unpacked) + " bytes and claims " + std::to_string(claimed);
}

}  // namespace

bool looks_like_zip(std::string_view begin) {
  return begin.starts_with("PK\3\4") || begin.starts_with("PK\5\6");
}

void ZipArchive::Close::operator()(zip* archive) const {
  zip_discard(archive);
}

void ZipArchive::Close::operator()(zip_file* file) const {
  zip_fclose(file);
}

ZipArchive::ZipArchive(const std::filesystem::path& path) : path_(path) {
  const OpenFile file(path);  // libzip would wait for a pipe
  int error = ZIP_ER_NOZIP;   // and takes a file of nothing for an archive of nothing
  if (file.size() > 0) archive_.reset(zip_open(path.c_str(), ZIP_RDONLY | ZIP_CHECKCONS, &error));
  if (!archive_) fail(words_of(error));
  const auto n_members = static_cast<uint64_t>(zip_get_num_entries(archive_.get(), 0));
  if (n_members > most_members) fail("it claims " + std::to_string(n_members) + " members");
  for (uint64_t index = 0; index < n_members; ++index) members_.push_back(member_at(index));
}

void ZipArchive::fail(const std::string& what) const {
  throw Error(path_.string() + ": damaged ZIP archive: " + what);
}

void ZipArchive::fail(const ZipMember& member, const std::string& what) const {
  throw Error(path_.string() + ": " + quoted_briefly(member.name) + ": damaged: " + what);
}

ZipMember ZipArchive::member_at(uint64_t index) const {
  zip_stat_t about;
  constexpr auto needed =
      ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
  if (zip_stat_index(archive_.get(), index, 0, &about) != 0 || (about.valid & needed) != needed)
    fail("nothing is known of member " + std::to_string(index));
  const std::string shown = quoted_briefly(about.name);
  if (about.encryption_method != ZIP_EM_NONE)
    return {about.name, index, about.size, false, "it is encrypted"};
  if (about.comp_method != ZIP_CM_STORE && about.comp_method != ZIP_CM_DEFLATE)
    return {about.name, index, about.size, false,
            "expected it stored or deflated, got method " + std::to_string(about.comp_method)};
  const bool deflated = about.comp_method == ZIP_CM_DEFLATE;
  if (!deflated && about.size != about.comp_size) fail(shown + " is stored but has two sizes");
  if (about.size / largest_ratio > about.comp_size)
    fail(shown + " claims " + std::to_string(about.size) + " bytes in " + std::to_string(about.comp_size));
  return {about.name, index, about.size, deflated, ""};
}

ZipArchive::File ZipArchive::opened(const ZipMember& member) const {
  File file(zip_fopen_index(archive_.get(), member.index, 0));
  if (!file) fail(member, words_of(zip_error_code_zip(zip_get_error(archive_.get()))));
  return file;
}

std::string ZipArchive::begin(const ZipMember& member, uint64_t count) const {
  const std::lock_guard lock(mutex_);
  const File file = opened(member);
  std::string begin(std::min(count, member.size), '\0');
  const zip_int64_t got = zip_fread(file.get(), begin.data(), begin.size());
  if (got < 0) fail(member, words_of(file.get()));
  if (static_cast<uint64_t>(got) < begin.size())
    fail(member, words_of_lengths(static_cast<uint64_t>(got), member.size));
  return begin;
}

/// Makes sure that the next byte to be read of a member stands at from or before it.
void ZipArchive::go_to(const ZipMember& member, uint64_t from) const {
  if (!file_ || index_ != member.index || at_ > from) {
    file_.reset();
    file_ = opened(member);
    index_ = member.index;
    at_ = 0;
  }
  if (member.deflated || !checked_.contains(member.index)) return;
  if (zip_fseek(file_.get(), static_cast<zip_int64_t>(from), SEEK_SET) != 0)
    fail(member, words_of(file_.get()));
  at_ = from;
}

/// Reads on until a byte, or the end of the member, and gives those of the bytes that are asked for.
std::string ZipArchive::unpacked(const ZipMember& member, uint64_t from, uint64_t count, uint64_t until,
                                 const Token& progress) const {
  std::string wanted;
  wanted.reserve(count);
  const uint64_t end_of_member = std::min(until, member.size + 1);  // a byte more tells that it is longer
  std::string bytes(std::min(block, end_of_member - std::min(at_, end_of_member)), '\0');
  while (at_ < until) {
    progress.add(0);
    const zip_int64_t got =
        zip_fread(file_.get(), bytes.data(), std::min<uint64_t>(bytes.size(), until - at_));
    if (got < 0) fail(member, words_of(file_.get()));
    if (got == 0) break;
    const uint64_t end = at_ + static_cast<uint64_t>(got);
    const uint64_t first = std::clamp(from, at_, end), last = std::clamp(from + count, at_, end);
    wanted.append(bytes, first - at_, last - first);
    at_ = end;
    if (at_ > member.size)
      fail(member, "it unpacks to more than the " + std::to_string(member.size) + " bytes that it claims");
  }
  return wanted;
}

std::string ZipArchive::bytes(const ZipMember& member, uint64_t from, uint64_t count,
                              const Token& progress) const {
  const std::lock_guard lock(mutex_);
  const bool checked = checked_.contains(member.index);
  go_to(member, checked ? from : 0);
  std::string wanted = unpacked(member, from, count, checked ? from + count : UINT64_MAX, progress);
  if (at_ < (checked ? from + count : member.size)) fail(member, words_of_lengths(at_, member.size));
  checked_.insert(member.index);
  return wanted;
}

}  // namespace core::formats::readers
