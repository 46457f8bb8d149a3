#include "core/files/tensor.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <type_traits>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/base/utf8.hpp"
#include "core/files/json.hpp"

namespace core::formats {

namespace {

template <class Unsigned>
Unsigned load(const char* bytes, bool big_endian) {
  Unsigned bits;
  std::memcpy(&bits, bytes, sizeof bits);
  if ((std::endian::native == std::endian::big) == big_endian) return bits;
  Unsigned swapped = 0;
  for (std::size_t k = 0; k < sizeof bits; ++k)
    swapped = static_cast<Unsigned>(swapped | static_cast<Unsigned>(bits >> (8 * k) & 0xff)
                                                  << (8 * (sizeof bits - 1 - k)));
  return swapped;
}

/// Decodes all numbers; value() returns the value for the bits of one.
template <class Unsigned, class Value>
std::size_t decode_all(const char* bytes, bool big_endian, std::size_t count, double* numbers, Value value) {
  for (std::size_t k = 0; k < count; ++k)
    numbers[k] = value(load<Unsigned>(bytes + k * sizeof(Unsigned), big_endian));
  return count;
}

template <class Integer>
std::size_t decode_integers(const char* bytes, bool big_endian, std::size_t count, double* numbers) {
  using Unsigned = std::make_unsigned_t<Integer>;
  for (std::size_t k = 0; k < count; ++k) {
    const auto whole = static_cast<Integer>(load<Unsigned>(bytes + k * sizeof(Unsigned), big_endian));
    numbers[k] = static_cast<double>(whole);
    if constexpr (sizeof(Integer) == 8) {
      // 2^64 and 2^63 themselves cannot be cast back; no 64-bit integer is equal to them.
      const bool beyond = std::abs(numbers[k]) >= (std::is_signed_v<Integer> ? 0x1p63 : 0x1p64);
      if (beyond ? whole != std::numeric_limits<Integer>::min() : static_cast<Integer>(numbers[k]) != whole)
        return k;
    }
  }
  return count;
}

/// Returns the value of a float16 (IEEE 754 binary16).
double half_value(std::uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f;
  const double fraction = bits & 0x3ff, sign = bits >> 15 ? -1 : 1;
  if (exponent == 0x1f)
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity()
                         : std::numeric_limits<double>::quiet_NaN();
  return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25));
}

/// Returns the value of a float8_e4m3fn: no infinities, NaN if all bits of exponent and fraction are set.
double e4m3_value(std::uint8_t bits) {
  const int exponent = bits >> 3 & 0xf;
  const double fraction = bits & 0x7, sign = bits >> 7 ? -1 : 1;
  if (exponent == 0xf && fraction == 7) return std::numeric_limits<double>::quiet_NaN();
  return sign * (exponent == 0 ? std::ldexp(fraction, -9) : std::ldexp(fraction + 8, exponent - 10));
}

/// Returns the value of a float8_e5m2, which is the upper half of a float16.
double e5m2_value(std::uint8_t bits) {
  return half_value(static_cast<std::uint16_t>(bits << 8));
}

}  // namespace

std::size_t decode_numbers(const char* bytes, Dtype dtype, bool big_endian, std::size_t count,
                           double* numbers) {
  using std::uint16_t, std::uint32_t, std::uint64_t;
  switch (dtype) {
    case Dtype::f64:
      return decode_all<uint64_t>(bytes, big_endian, count, numbers,
                                  [](uint64_t b) { return std::bit_cast<double>(b); });
    case Dtype::f32:
      return decode_all<uint32_t>(bytes, big_endian, count, numbers,
                                  [](uint32_t b) { return std::bit_cast<float>(b); });
    case Dtype::f16:
      return decode_all<uint16_t>(bytes, big_endian, count, numbers, half_value);
    case Dtype::bf16:
      return decode_all<uint16_t>(bytes, big_endian, count, numbers,
                                  [](uint16_t b) { return std::bit_cast<float>(uint32_t{b} << 16); });
    case Dtype::f8_e4m3:
      return decode_all<std::uint8_t>(bytes, big_endian, count, numbers, e4m3_value);
    case Dtype::f8_e5m2:
      return decode_all<std::uint8_t>(bytes, big_endian, count, numbers, e5m2_value);
    case Dtype::i64:
      return decode_integers<std::int64_t>(bytes, big_endian, count, numbers);
    case Dtype::i32:
      return decode_integers<std::int32_t>(bytes, big_endian, count, numbers);
    case Dtype::i16:
      return decode_integers<std::int16_t>(bytes, big_endian, count, numbers);
    case Dtype::i8:
      return decode_integers<std::int8_t>(bytes, big_endian, count, numbers);
    case Dtype::u64:
      return decode_integers<uint64_t>(bytes, big_endian, count, numbers);
    case Dtype::u32:
      return decode_integers<uint32_t>(bytes, big_endian, count, numbers);
    case Dtype::u16:
      return decode_integers<uint16_t>(bytes, big_endian, count, numbers);
    case Dtype::u8:
      return decode_integers<std::uint8_t>(bytes, big_endian, count, numbers);
    case Dtype::boolean:
      return decode_all<std::uint8_t>(bytes, big_endian, count, numbers,
                                      [](std::uint8_t b) { return b ? 1.0 : 0.0; });
    case Dtype::text:
      break;
  }
  return 0;
}

std::string decode_utf32(const char* bytes, std::size_t n_bytes, bool big_endian) {
  const auto character = [&](std::size_t k) { return load<std::uint32_t>(bytes + 4 * k, big_endian); };
  std::size_t count = n_bytes / 4;
  while (count > 0 && character(count - 1) == 0) --count;  // first, as a string keeps its capacity
  std::string text;
  for (std::size_t k = 0; k < count; ++k) text::append_character(text, character(k));
  return text;
}

namespace {

constexpr std::array dtype_table{
    DtypeNames{Dtype::f64, 8, "float64", "f8", "F64", "Double"},
    DtypeNames{Dtype::f32, 4, "float32", "f4", "F32", "Float"},
    DtypeNames{Dtype::f16, 2, "float16", "f2", "F16", "Half"},
    DtypeNames{Dtype::bf16, 2, "bfloat16", "", "BF16", "BFloat16"},
    DtypeNames{Dtype::f8_e4m3, 1, "float8_e4m3fn", "", "F8_E4M3", ""},
    DtypeNames{Dtype::f8_e5m2, 1, "float8_e5m2", "", "F8_E5M2", ""},
    DtypeNames{Dtype::i64, 8, "int64", "i8", "I64", "Long"},
    DtypeNames{Dtype::i32, 4, "int32", "i4", "I32", "Int"},
    DtypeNames{Dtype::i16, 2, "int16", "i2", "I16", "Short"},
    DtypeNames{Dtype::i8, 1, "int8", "i1", "I8", "Char"},
    DtypeNames{Dtype::u64, 8, "uint64", "u8", "U64", ""},
    DtypeNames{Dtype::u32, 4, "uint32", "u4", "U32", ""},
    DtypeNames{Dtype::u16, 2, "uint16", "u2", "U16", ""},
    DtypeNames{Dtype::u8, 1, "uint8", "u1", "U8", "Byte"},
    DtypeNames{Dtype::boolean, 1, "bool", "b1", "BOOL", "Bool"},
    DtypeNames{Dtype::text, 0, "text", "", "", ""},
};

[[noreturn]] void fail(const Tensor& tensor, const std::string& what) {
  throw Error("tensor " + tensor.name + " of shape " + shape_text(tensor.shape) + ": " + what);
}

/// Returns the offset of the part at leading indices, in numbers. Throws core::Error when there is none.
std::size_t part_offset(const Tensor& tensor, std::span<const std::size_t> leading) {
  if (leading.size() > tensor.shape.size())
    fail(tensor, fmt::format("expected at most {} indices, got {}", tensor.shape.size(), leading.size()));
  std::size_t begin = 0;
  for (std::size_t k = 0; k < tensor.shape.size(); ++k) {
    if (k < leading.size() && leading[k] >= tensor.shape[k])
      fail(tensor, fmt::format("expected an index below {}, got {}", tensor.shape[k], leading[k]));
    begin = begin * tensor.shape[k] + (k < leading.size() ? leading[k] : 0);
  }
  return begin;
}

}  // namespace

std::span<const DtypeNames> dtypes() {
  return dtype_table;
}

std::optional<Dtype> find_dtype(std::string_view word, const char* DtypeNames::*name_field) {
  for (const DtypeNames& names : dtype_table)
    if (!word.empty() && names.dtype != Dtype::text && word == names.*name_field) return names.dtype;
  return std::nullopt;
}

const char* dtype_name(Dtype dtype) {
  return dtype_table[static_cast<std::size_t>(dtype)].name;
}

std::size_t dtype_bytes(Dtype dtype) {
  return dtype_table[static_cast<std::size_t>(dtype)].bytes;
}

std::string shape_text(const TensorShape& shape) {
  return "[" + text::joined(shape, ", ", [](std::size_t length) { return std::to_string(length); }) + "]";
}

std::optional<std::uint64_t> count_of(std::span<const std::size_t> lengths) {
  constexpr std::uint64_t most = std::uint64_t{1} << 62;
  std::uint64_t count = 1;
  bool too_many = false;
  for (const std::size_t length : lengths) {
    if (length == 0) return 0;
    too_many = too_many || length > most / count;
    if (!too_many) count *= length;
  }
  return too_many ? std::nullopt : std::optional(count);
}

Tensor slice_tensor(const Tensor& tensor, std::span<const std::size_t> leading) {
  if (leading.empty()) return tensor;
  const auto from = static_cast<std::ptrdiff_t>(part_offset(tensor, leading));
  Tensor part;
  part.name = tensor.name;
  part.dtype = tensor.dtype;
  part.printed_precision = tensor.printed_precision;
  part.shape.assign(tensor.shape.begin() + static_cast<std::ptrdiff_t>(leading.size()), tensor.shape.end());
  const auto count = static_cast<std::ptrdiff_t>(count_of(part.shape).value_or(0));
  if (tensor.dtype == Dtype::text)
    part.texts.assign(tensor.texts.begin() + from, tensor.texts.begin() + from + count);
  else
    part.numbers.assign(tensor.numbers.begin() + from, tensor.numbers.begin() + from + count);
  if (leading.size() < 2 && tensor.shape.size() > 1) part.column_labels = tensor.column_labels;
  return part;
}

arma::mat matrix(const Tensor& tensor, std::span<const std::size_t> leading) {
  if (tensor.dtype == Dtype::text) fail(tensor, "expected numbers, got text");
  const std::size_t from = part_offset(tensor, leading);
  const auto shape = std::span(tensor.shape).subspan(leading.size());
  if (shape.size() > 2) fail(tensor, fmt::format("expected a matrix, got {} dimensions", shape.size()));
  const std::size_t n_cols = shape.empty() ? 1 : shape.back();
  const std::size_t n_rows = shape.size() < 2 ? 1 : shape.front();
  if (tensor.numbers.empty()) fail(tensor, "expected at least one number");  // however many rows there are
  return arma::mat(tensor.numbers.data() + from, n_cols, n_rows).t();
}

std::vector<arma::mat> matrices(const Tensor& tensor) {
  if (tensor.shape.size() < 2) fail(tensor, "expected at least two dimensions");
  const std::size_t n_cols = tensor.shape.back(), n_rows = tensor.shape[tensor.shape.size() - 2];
  if (tensor.numbers.empty() || n_rows * n_cols == 0) fail(tensor, "expected at least one number");
  std::vector<arma::mat> all;
  for (std::size_t from = 0; from < tensor.numbers.size(); from += n_rows * n_cols)
    all.push_back(arma::mat(tensor.numbers.data() + from, n_cols, n_rows).t());
  return all;
}

namespace {

void check_part(const TensorInfo& info, std::span<const std::size_t> leading, const std::string& place) {
  if (leading.size() > info.shape.size())
    throw Error(fmt::format("{}expected at most {} indices into {}, got {}", place, info.shape.size(),
                            shape_text(info.shape), leading.size()));
  for (std::size_t k = 0; k < leading.size(); ++k) {
    if (leading[k] >= info.shape[k])
      throw Error(fmt::format("{}expected index {} of {} to be below {}, got {}", place, k,
                              shape_text(info.shape), info.shape[k], leading[k]));
  }
  const auto count = count_of(std::span(info.shape).subspan(leading.size()));
  if (!count || *count > max_numbers)
    throw Error(fmt::format("{}expected at most {} numbers at once, got {}", place, max_numbers,
                            shape_text(info.shape)));
}

/// Returns the indices of tensors sorted by name. Throws core::Error when two names are equal, as names that
/// differ in control characters may be after escaping.
std::vector<std::size_t> indices_by_name(const std::vector<TensorInfo>& infos, const std::string& place) {
  std::vector<std::size_t> places(infos.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  const auto name_at = [&](std::size_t k) -> const std::string& { return infos[k].name; };
  std::ranges::sort(places, {}, name_at);
  if (const auto duplicate = std::ranges::adjacent_find(places, {}, name_at); duplicate != places.end())
    throw Error(place + "two tensors are called " + quoted_briefly(name_at(*duplicate)));
  return places;
}

}  // namespace

TensorFile::TensorFile(std::filesystem::path path, const char* format, std::vector<TensorEntry> entries,
                       std::vector<std::string> notes)
    : path_(std::move(path)), format_(format), notes_(std::move(notes)) {
  for (std::string& note : notes_) note = text::printable(note);
  for (TensorEntry& entry : entries) {
    entry.info.name = text::printable(entry.info.name);
    infos_.push_back(std::move(entry.info));
    reads_.push_back(std::move(entry.read));
    stored_.push_back(std::move(entry.stored));
  }
  by_name_ = indices_by_name(infos_, place());
}

const TensorInfo* TensorFile::find(std::string_view name) const {
  const auto name_at = [&](std::size_t k) { return std::string_view(infos_[k].name); };
  const auto found = std::ranges::lower_bound(by_name_, name, {}, name_at);
  return found != by_name_.end() && name_at(*found) == name ? &infos_[*found] : nullptr;
}

std::vector<const TensorInfo*> TensorFile::with_prefix(std::string_view prefix) const {
  std::vector<const TensorInfo*> all;
  const auto name_at = [&](std::size_t k) { return std::string_view(infos_[k].name); };
  for (auto k = std::ranges::lower_bound(by_name_, prefix, {}, name_at);
       k != by_name_.end() && name_at(*k).starts_with(prefix); ++k)
    all.push_back(&infos_[*k]);
  return all;
}

const TensorInfo& TensorFile::info(std::string_view name) const {
  if (const TensorInfo* found = find(name)) return *found;
  throw Error(place() + "there is no tensor " + quoted_briefly(name) + " in it" +
              (notes_.empty() ? "" : " (" + text::joined(notes_, " ") + ")"));
}

Tensor TensorFile::read(std::string_view name, std::span<const std::size_t> leading,
                        const StopToken& progress) const {
  const TensorInfo& wanted = info(name);
  check_part(wanted, leading, place() + wanted.name + ": ");
  return reads_[static_cast<std::size_t>(&wanted - infos_.data())](leading, progress);
}

const StoredNumbers* TensorFile::stored(std::string_view name) const {
  const auto& found = stored_[static_cast<std::size_t>(&info(name) - infos_.data())];
  return found ? &*found : nullptr;
}

Tensor TensorFile::read(std::string_view name, std::span<const std::size_t> leading) const {
  StopToken progress;
  return read(name, leading, progress);
}

TensorEntry make_entry(Tensor tensor) {
  TensorInfo info = tensor;
  return {std::move(info), [whole = std::make_shared<const Tensor>(std::move(tensor))](
                               std::span<const std::size_t> leading, const StopToken&) {
            return slice_tensor(*whole, leading);
          }};
}

}  // namespace core::formats
