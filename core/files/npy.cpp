#include "core/files/npy.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/error.hpp"
#include "core/files/json.hpp"
#include "core/files/little_endian.hpp"
#include "core/files/npy_header.hpp"

namespace core::formats::readers {
namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::uint64_t longest_npy_header = std::uint64_t{1} << 20;

struct Kind {
  const char* code;  ///< as in descr, without the byte order
  Dtype dtype;
};
constexpr std::array kinds{Kind{"f8", Dtype::f64}, Kind{"f4", Dtype::f32}, Kind{"f2", Dtype::f16},
                           Kind{"i8", Dtype::i64}, Kind{"i4", Dtype::i32}, Kind{"i2", Dtype::i16},
                           Kind{"i1", Dtype::i8},  Kind{"u8", Dtype::u64}, Kind{"u4", Dtype::u32},
                           Kind{"u2", Dtype::u16}, Kind{"u1", Dtype::u8},  Kind{"b1", Dtype::boolean}};

std::string unknown_type(const std::string& descr) {
  if (descr.find('O') != descr.npos)
    return "expected numbers, got Python objects (pickle), which are never opened";
  if (descr.find('c') != descr.npos)
    return "expected real numbers, got complex ones (" + quoted_briefly(descr) + ")";
  return "expected numbers of 8 to 64 bits, bool or text, got the type " + quoted_briefly(descr);
}

/// Sets what descr says of one number: '<f4', '|b1', '>i8', '<U7'.
void read_type(const std::string& descr, RawTensor& tensor) {
  const std::string code = descr.substr(std::min<std::size_t>(1, descr.size()));
  const auto kind = std::ranges::find(kinds, code, &Kind::code);
  if (descr.empty() || std::string_view("<>|=").find(descr[0]) == std::string_view::npos)
    throw Error(tensor.place + unknown_type(descr));
  tensor.big_endian = descr[0] == '>';
  if (kind != kinds.end()) {
    tensor.info.dtype = kind->dtype;
    tensor.item_bytes = dtype_bytes(kind->dtype);
    return;
  }
  if (!code.starts_with('U') || code.size() < 2 || code.size() > 7 ||
      code.find_first_not_of("0123456789", 1) != code.npos)
    throw Error(tensor.place + unknown_type(descr));
  tensor.info.dtype = Dtype::text;
  tensor.item_bytes = 4 * std::stoull(code.substr(1));
  if (tensor.item_bytes == 0) throw Error(tensor.place + unknown_type(descr));  // it could claim any number
}

}  // namespace

bool looks_like_npy(std::string_view begin) {
  return begin.starts_with(magic);
}

RawTensor npy_tensor(std::string name, std::string place, std::uint64_t n_bytes, const Fetch& fetch) {
  Token unseen;
  std::string buffer;
  RawTensor tensor{{std::move(name), Dtype::f64, {}}, 8, false, {}, false, std::move(place), {}};
  constexpr std::uint64_t shortest = 10;
  if (n_bytes < shortest || !looks_like_npy(fetch(0, shortest, buffer, unseen)))
    throw Error(tensor.place + "expected a .npy file, which begins with \\x93NUMPY");
  const int version = fetch(0, shortest, buffer, unseen)[magic.size()];
  if (version < 1 || version > 3)
    throw Error(tensor.place + "expected version 1, 2 or 3 of the .npy format, got " +
                std::to_string(version & 0xff));
  const std::uint64_t before_header = version == 1 ? 10 : 12, length_at = 8;
  if (n_bytes < before_header) throw Error(tensor.place + "expected a header, got the end of the file");
  const std::uint64_t length =
      little_endian(fetch(0, before_header, buffer, unseen).substr(length_at, before_header - length_at));
  if (length > n_bytes - before_header)
    throw Error(tensor.place + "expected a header of " + std::to_string(length) + " bytes, got a file of " +
                std::to_string(n_bytes));
  if (length > longest_npy_header)
    throw Error(tensor.place + "expected a header of at most " + std::to_string(longest_npy_header) +
                " bytes, got " + std::to_string(length));
  const std::uint64_t data_at = before_header + length;
  const NpyHeader header =
      parse_npy_header(fetch(0, data_at, buffer, unseen).substr(before_header), tensor.place);
  read_type(header.descr, tensor);
  tensor.info.shape = header.shape;
  const auto expected = byte_count(tensor);
  if (!expected || *expected != n_bytes - data_at)
    throw Error(tensor.place + "expected " + (expected ? std::to_string(*expected) : "more than 2^62") +
                " bytes for " + dtype_name(tensor.info.dtype) + " " + shape_text(header.shape) + ", got " +
                std::to_string(n_bytes - data_at));
  if (header.fortran_order) tensor.strides = columns_first(header.shape);
  tensor.fetch = [fetch, data_at](std::uint64_t from, std::uint64_t count, std::string& bytes,
                                  const Token& progress) {
    return fetch(data_at + from, count, bytes, progress);
  };
  return tensor;
}

TensorFile open_npy(const std::filesystem::path& path, const Token&) {
  const auto file = std::make_shared<const OpenFile>(path, OpenFile::Keeps::closed);
  const Fetch fetch = [file](std::uint64_t from, std::uint64_t count, std::string& buffer, const Token&) {
    file->read(from, count, buffer);
    return std::string_view(buffer);
  };
  std::vector<TensorFile::Entry> entries;
  entries.push_back(entry_of(npy_tensor(path.stem().string(), path.string() + ": ", file->size(), fetch)));
  return {path, "npy", std::move(entries)};
}

}  // namespace core::formats::readers
