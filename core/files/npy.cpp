#include <fmt/core.h>
#include <zip.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "core/base/number.hpp"
#include "core/base/text.hpp"
#include "core/files/json.hpp"
#include "core/files/little_endian.hpp"
#include "core/files/readers.hpp"

/// NumPy's .npy files and archives of them, and ZIP archives in general.
namespace core::formats::readers {
namespace {

using std::uint64_t;

constexpr uint64_t unpacked_at_once = uint64_t{1} << 18;
constexpr uint64_t max_members = 1 << 20;
constexpr uint64_t max_ratio = 1032;  // of deflate: 258 bytes from 2 bits

std::string zip_error_text(int code) {
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

std::string length_mismatch_text(uint64_t unpacked, uint64_t claimed) {
  return fmt::format("it unpacks to {} bytes and claims {}", unpacked, claimed);
}

}  // namespace

/// State of libzip for an archive and the member that was read last.
struct ZipArchive::State {
  struct Close {
    void operator()(zip* open) const { zip_discard(open); }
    void operator()(zip_file* open) const { zip_fclose(open); }
  };
  std::filesystem::path path;
  std::unique_ptr<zip, Close> archive;
  std::mutex mutex;                       ///< guards the members below and libzip's state
  std::set<uint64_t> checked;             ///< members with a verified checksum
  std::unique_ptr<zip_file, Close> file;  ///< the member that was read last
  uint64_t index = 0, at = 0;             ///< its index, and the bytes read so far

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(path.string() + ": damaged ZIP archive: " + what);
  }
  [[noreturn]] void fail(const ZipMember& member, const std::string& what) const {
    throw Error(path.string() + ": " + quoted_briefly(member.name) + ": damaged: " + what);
  }

  void open(const ZipMember& member) {
    file.reset();
    file.reset(zip_fopen_index(archive.get(), member.index, 0));
    if (!file) fail(member, zip_error_text(zip_error_code_zip(zip_get_error(archive.get()))));
    index = member.index;
    at = 0;
  }

  /// Reads the next bytes and returns their number.
  uint64_t read(const ZipMember& member, char* bytes, uint64_t count) {
    const zip_int64_t got = zip_fread(file.get(), bytes, count);
    if (got < 0) fail(member, zip_error_text(zip_error_code_zip(zip_file_get_error(file.get()))));
    at += static_cast<uint64_t>(got);
    return static_cast<uint64_t>(got);
  }

  ZipMember member_at(uint64_t place) const {
    zip_stat_t about;
    constexpr auto needed = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD |
                            ZIP_STAT_ENCRYPTION_METHOD;
    if (zip_stat_index(archive.get(), place, 0, &about) != 0 || (about.valid & needed) != needed)
      fail("nothing is known of member " + std::to_string(place));
    ZipMember member{about.name, place, about.size, about.comp_method == ZIP_CM_DEFLATE, ""};
    const std::string shown = quoted_briefly(member.name);
    if (about.encryption_method != ZIP_EM_NONE)
      member.problem = "it is encrypted";
    else if (about.comp_method != ZIP_CM_STORE && !member.deflated)
      member.problem = "expected it stored or deflated, got method " + std::to_string(about.comp_method);
    else if (!member.deflated && about.size != about.comp_size)
      fail(shown + " is stored but has two sizes");
    else if (about.size / max_ratio > about.comp_size)
      fail(fmt::format("{} claims {} bytes in {}", shown, about.size, about.comp_size));
    return member;
  }
};

bool looks_like_zip(std::string_view begin) {
  return begin.starts_with("PK\3\4") || begin.starts_with("PK\5\6");
}

ZipArchive::ZipArchive(const std::filesystem::path& path) : state_(std::make_shared<State>()) {
  State& r = *state_;
  r.path = path;
  const system::OpenFile file(path);  // rejects a pipe, for which libzip would wait
  int error = ZIP_ER_NOZIP;           // libzip takes an empty file for an empty archive
  if (file.size() > 0) r.archive.reset(zip_open(path.c_str(), ZIP_RDONLY | ZIP_CHECKCONS, &error));
  if (!r.archive) r.fail(zip_error_text(error));
  const auto n_members = static_cast<uint64_t>(zip_get_num_entries(r.archive.get(), 0));
  if (n_members > max_members) r.fail(fmt::format("it claims {} members", n_members));
  for (uint64_t index = 0; index < n_members; ++index) members_.push_back(r.member_at(index));
}

std::string ZipArchive::begin(const ZipMember& member, uint64_t count) const {
  State& r = *state_;
  const std::lock_guard lock(r.mutex);
  r.open(member);
  std::string begin(std::min(count, member.size), '\0');
  if (const uint64_t got = r.read(member, begin.data(), begin.size()); got < begin.size())
    r.fail(member, length_mismatch_text(got, member.size));
  return begin;
}

std::string ZipArchive::bytes(const ZipMember& member, uint64_t from, uint64_t count,
                              const StopToken& progress) const {
  State& r = *state_;
  const auto no_pause = progress.without_pause();
  const std::lock_guard lock(r.mutex);
  const bool is_checked = r.checked.contains(member.index);
  if (!r.file || r.index != member.index || r.at > (is_checked ? from : 0)) r.open(member);
  if (is_checked && !member.deflated) {
    if (zip_fseek(r.file.get(), static_cast<zip_int64_t>(from), SEEK_SET) != 0)
      r.fail(member, zip_error_text(zip_error_code_zip(zip_file_get_error(r.file.get()))));
    r.at = from;
  }
  const uint64_t until = is_checked ? from + count : UINT64_MAX;
  std::string wanted,
      block(std::min(unpacked_at_once, member.size + 1), '\0');  // one byte more reveals a longer member
  wanted.reserve(count);
  while (r.at < until) {
    progress.add(0);
    const uint64_t begin = r.at,
                   got = r.read(member, block.data(), std::min<uint64_t>(block.size(), until - r.at));
    if (got == 0) break;
    const uint64_t first = std::clamp(from, begin, r.at), last = std::clamp(from + count, begin, r.at);
    wanted.append(block, first - begin, last - first);
    if (r.at > member.size)
      r.fail(member, fmt::format("it unpacks to more than the {} bytes that it claims", member.size));
  }
  if (r.at < (is_checked ? until : member.size)) r.fail(member, length_mismatch_text(r.at, member.size));
  r.checked.insert(member.index);
  return wanted;
}

Fetch fetch_from(std::shared_ptr<const ZipArchive> archive, ZipMember member) {
  return [archive = std::move(archive), member = std::move(member)](
             uint64_t from, uint64_t count, std::string& buffer, const StopToken& progress) {
    buffer = archive->bytes(member, from, count, progress);
    return std::string_view(buffer);
  };
}

namespace {

/// The dictionary at the beginning of a .npy file.
struct NpyHeader {
  std::string descr;  ///< '<f8'; for records, the whole list as it is written
  bool fortran_order = false;
  TensorShape shape;
};

/// Reads the Python literal {'descr': …, 'fortran_order': …, 'shape': (…)} without evaluating it.
class NpyHeaderReader {
 public:
  NpyHeaderReader(std::string_view text, const std::string& place) : rest_(text), place_(place) {}

  NpyHeader header() {
    std::optional<std::string> descr;
    std::optional<bool> fortran_order;
    std::optional<TensorShape> shape;
    expect('{');
    while (!accept('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr" && !descr)
        descr = type();
      else if (key == "fortran_order" && !fortran_order)
        fortran_order = boolean();
      else if (key == "shape" && !shape)
        shape = lengths();
      else
        fail("the keys 'descr', 'fortran_order' and 'shape', each once");
      if (!accept(',') && !next_is('}')) fail("',' or '}'");
    }
    skip_spaces();
    if (!rest_.empty()) fail("nothing after '}'");
    if (!descr || !fortran_order || !shape) fail("the keys 'descr', 'fortran_order' and 'shape'");
    return {*descr, *fortran_order, *shape};
  }

 private:
  [[noreturn]] void fail(const std::string& expected) const {
    throw Error(place_ + "header: expected " + expected + ", got " +
                (rest_.empty() ? "its end" : quoted_briefly(rest_.substr(0, 20))));
  }

  void skip_spaces() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size())); }
  bool next_is(char c) {
    skip_spaces();
    return rest_.starts_with(c);
  }
  bool accept(char c) {
    if (!next_is(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(std::string("'") + c + "'");
  }

  std::string quoted() {
    skip_spaces();
    const char quote = next_is('"') ? '"' : '\'';
    if (!next_is(quote)) fail("a text in quotes");
    const std::size_t end = rest_.find(quote, 1);
    if (end == rest_.npos) fail("a text in quotes");
    const std::string text(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return text;
  }

  /// Reads a text, or the list of a record's fields, which is kept as it is for the error message.
  std::string type() {
    if (!next_is('[')) return quoted();
    int depth = 0;
    for (std::size_t k = 0; k < rest_.size(); ++k) {
      depth += rest_[k] == '[' ? 1 : rest_[k] == ']' ? -1 : 0;
      if (depth > 0) continue;
      const std::string text(rest_.substr(0, k + 1));
      rest_.remove_prefix(k + 1);
      return text;
    }
    fail("a ']'");
  }

  bool boolean() {
    skip_spaces();
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (!rest_.starts_with(word)) continue;
      rest_.remove_prefix(word.size());
      return value;
    }
    fail("True or False");
  }

  TensorShape lengths() {
    TensorShape shape;
    expect('(');
    while (!accept(')')) {
      skip_spaces();
      const auto length = text::consume_unsigned(rest_);
      if (!length || !std::in_range<std::size_t>(*length)) fail("a length of at most 2^64 - 1");
      if (rest_.starts_with('L')) rest_.remove_prefix(1);  // as Python 2 wrote it
      shape.push_back(*length);
      if (shape.size() > max_dimensions) fail("at most 32 dimensions");
      if (!accept(',') && !next_is(')')) fail("',' or ')'");
    }
    return shape;
  }

  std::string_view rest_;
  const std::string& place_;
};

constexpr std::string_view npy_magic = "\x93NUMPY";
constexpr std::uint64_t max_npy_header = std::uint64_t{1} << 20;

/// Returns the dtype of raw bytes (V2, V1) as ml_dtypes and JAX write bfloat16 and float8, if the header or
/// the names of the file and the tensor say which.
std::optional<Dtype> dtype_of_raw_bytes(const std::string& descr, const std::string& place) {
  if (descr == "bfloat16") return Dtype::bf16;
  const std::string code = descr.substr(std::min<std::size_t>(1, descr.size()));
  const std::string names = text::lower(std::string_view(place).substr(place.rfind('/') + 1));
  const auto has = [&](const char* word) { return names.find(word) != names.npos; };
  if (code == "V2" && (has("bfloat16") || has("bf16"))) return Dtype::bf16;
  if (code != "V1" && code != "f1") return std::nullopt;
  if (has("e4m3")) return Dtype::f8_e4m3;
  return has("e5m2") ? std::optional(Dtype::f8_e5m2) : std::nullopt;
}

std::string unsupported_dtype_text(const std::string& descr) {
  const std::string code = descr.substr(std::min<std::size_t>(1, descr.size()));
  for (const auto& [raw, name, kind] :
       {std::tuple{"V2", "bfloat16", "bfloat16"}, std::tuple{"V1", "float8", "e4m3 or e5m2"},
        std::tuple{"f1", "float8", "e4m3 or e5m2"}})
    if (code == raw)
      return fmt::format(
          "expected numbers of 8 to 64 bits, bool or text, got the type {}, as NumPy writes {}: save "
          "x.astype(\"float32\"), or put {} into the name of the file",
          quoted_briefly(descr), name, kind);
  if (descr.find('O') != descr.npos)
    return "expected numbers, got Python objects (pickle), which are never opened";
  if (descr.find('c') != descr.npos)
    return "expected real numbers, got complex ones (" + quoted_briefly(descr) + ")";
  return "expected numbers of 8 to 64 bits, bool or text, got the type " + quoted_briefly(descr);
}

/// Sets dtype, size and byte order of one number from descr: '<f4', '|b1', '>i8', '<U7'.
void read_type(const std::string& descr, RawTensor& tensor) {
  const std::string code = descr.substr(std::min<std::size_t>(1, descr.size()));
  if (const auto dtype = dtype_of_raw_bytes(descr, tensor.place)) {
    tensor.info.dtype = *dtype;
    tensor.item_bytes = dtype_bytes(*dtype);
    tensor.big_endian = descr[0] == '>';
    return;
  }
  if (descr.empty() || std::string_view("<>|=").find(descr[0]) == std::string_view::npos)
    throw Error(tensor.place + unsupported_dtype_text(descr));
  tensor.big_endian = descr[0] == '>';
  if (const auto dtype = find_dtype(code, &DtypeNames::npy)) {
    tensor.info.dtype = *dtype;
    tensor.item_bytes = dtype_bytes(*dtype);
    return;
  }
  if (!code.starts_with('U') || code.size() < 2 || code.size() > 7 ||
      code.find_first_not_of("0123456789", 1) != code.npos)
    throw Error(tensor.place + unsupported_dtype_text(descr));
  tensor.info.dtype = Dtype::text;
  tensor.item_bytes = 4 * std::stoull(code.substr(1));
  if (tensor.item_bytes == 0)
    throw Error(tensor.place + unsupported_dtype_text(descr));  // fits any number of texts
}

/// Returns the tensor of a .npy file of n_bytes, read by fetch; reads only its header.
RawTensor npy_tensor(std::string name, std::string place, std::uint64_t n_bytes, const Fetch& fetch) {
  StopToken no_progress;
  std::string buffer;
  RawTensor tensor{{std::move(name), Dtype::f64, {}}, 8, false, {}, std::move(place), {}};
  constexpr std::uint64_t shortest = 10;
  if (n_bytes < shortest || !looks_like_npy(fetch(0, shortest, buffer, no_progress)))
    throw Error(tensor.place + "expected a .npy file, which begins with \\x93NUMPY");
  const int version = fetch(0, shortest, buffer, no_progress)[npy_magic.size()];
  if (version < 1 || version > 3)
    throw Error(
        fmt::format("{}expected version 1, 2 or 3 of the .npy format, got {}", tensor.place, version & 0xff));
  const std::uint64_t before_header = version == 1 ? 10 : 12, length_at = 8;
  if (n_bytes < before_header) throw Error(tensor.place + "expected a header, got the end of the file");
  const std::uint64_t length = little_endian(
      fetch(0, before_header, buffer, no_progress).substr(length_at, before_header - length_at));
  if (length > n_bytes - before_header)
    throw Error(
        fmt::format("{}expected a header of {} bytes, got a file of {}", tensor.place, length, n_bytes));
  if (length > max_npy_header)
    throw Error(
        fmt::format("{}expected a header of at most {} bytes, got {}", tensor.place, max_npy_header, length));
  const std::uint64_t data_at = tensor.begin = before_header + length;
  const NpyHeader header =
      NpyHeaderReader(fetch(0, data_at, buffer, no_progress).substr(before_header), tensor.place).header();
  read_type(header.descr, tensor);
  tensor.info.shape = header.shape;
  const auto expected = byte_count(tensor);
  if (!expected || *expected != n_bytes - data_at)
    throw Error(fmt::format("{}expected {} bytes for {} {}, got {}", tensor.place,
                            expected ? std::to_string(*expected) : "more than 2^62",
                            dtype_name(tensor.info.dtype), shape_text(header.shape), n_bytes - data_at));
  if (header.fortran_order) tensor.strides = column_major_strides(header.shape);
  return tensor;
}

constexpr std::string_view npy_ending = ".npy";

TensorEntry entry_of_member(const std::shared_ptr<const ZipArchive>& archive, const ZipMember& member,
                            const std::string& file_name) {
  constexpr uint64_t short_header = 4096;
  const std::string name = member.name.substr(0, member.name.size() - npy_ending.size());
  const std::string place = file_name + ": " + name + ": ";
  if (!member.problem.empty()) throw Error(place + member.problem);
  // The header is read unchecked; numbers are returned only after the member's checksum is verified.
  const Fetch begin = [&](uint64_t from, uint64_t count, std::string& buffer, const StopToken&) {
    if (buffer.size() < from + count) buffer = archive->begin(member, std::max(short_header, from + count));
    if (buffer.size() < from + count) throw Error(place + "expected a .npy header, got the end of the file");
    return std::string_view(buffer).substr(from, count);
  };
  RawTensor tensor = npy_tensor(name, place, member.size, begin);
  tensor.fetch = fetch_from(archive, member);
  return make_entry(std::move(tensor));
}

}  // namespace

bool looks_like_npy(std::string_view begin) {
  return begin.starts_with(npy_magic);
}

TensorFile open_npy(const std::filesystem::path& path, const StopToken&) {
  const auto file = std::make_shared<const system::OpenFile>(path, system::OpenFile::BetweenReads::closed);
  RawTensor tensor = npy_tensor(path.stem().string(), path.string() + ": ", file->size(), fetch_from(file));
  tensor.fetch = fetch_from(file);
  return {path, "npy", {make_entry(std::move(tensor))}};
}

TensorFile open_npz(const std::filesystem::path& path, const StopToken& progress) {
  const auto archive = std::make_shared<const ZipArchive>(path);
  if (std::ranges::any_of(archive->members(), is_torch_pickle_name, &ZipMember::name))
    return open_pytorch(path, progress);
  std::vector<TensorEntry> entries;
  SkipNotes skipped(path.string() + ": ");
  for (const ZipMember& member : archive->members()) {
    progress.add(0);
    if (member.name.ends_with(npy_ending))
      skipped.run_or_note([&] { entries.push_back(entry_of_member(archive, member, path.string())); });
    else if (!member.name.ends_with('/'))
      skipped.note(quoted_briefly(member.name) + " is no .npy file");
  }
  if (entries.empty()) skipped.fail("expected an archive of .npy files, got none in it");
  return {path, "npz", std::move(entries), skipped.notes()};
}

}  // namespace core::formats::readers
