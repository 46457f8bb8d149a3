#include "core/files/gguf.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <memory>
#include <set>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/find.hpp"
#include "core/base/text.hpp"
#include "core/files/little_endian.hpp"
#include "core/files/readers.hpp"

namespace core::formats {

namespace {

using Byte = unsigned char;

/// Returns the bytes of a block from an offset on.
const Byte* bytes_at(const char* block, std::size_t offset) {
  return reinterpret_cast<const Byte*>(block) + offset;
}

float half_at(const char* block, std::size_t offset) {
  double number = 0;
  decode_numbers(block + offset, Dtype::f16, false, 1, &number);
  return static_cast<float>(number);
}

int signed_byte(Byte byte) {
  return byte < 128 ? byte : byte - 256;
}

/// Decodes 32 four-bit numbers, the lower halves of the bytes first; value(index, bits) returns each number.
template <class Value>
void decode_nibbles(const Byte* bytes, float* numbers, Value value) {
  for (std::size_t j = 0; j < 16; ++j) {
    numbers[j] = value(j, bytes[j] & 15);
    numbers[j + 16] = value(j + 16, bytes[j] >> 4);
  }
}

void q4_0(const char* block, float* numbers) {
  const float d = half_at(block, 0);
  decode_nibbles(bytes_at(block, 2), numbers,
                 [&](std::size_t, int q) { return d * static_cast<float>(q - 8); });
}

void q4_1(const char* block, float* numbers) {
  const float d = half_at(block, 0), m = half_at(block, 2);
  decode_nibbles(bytes_at(block, 4), numbers,
                 [&](std::size_t, int q) { return d * static_cast<float>(q) + m; });
}

/// Returns the fifth bit of number j, as 0 or 16.
int fifth_bit(const Byte* bits, std::size_t j) {
  return (bits[j / 8] >> j % 8 & 1) << 4;
}

void q5_0(const char* block, float* numbers) {
  const float d = half_at(block, 0);
  const Byte* high = bytes_at(block, 2);
  decode_nibbles(bytes_at(block, 6), numbers,
                 [&](std::size_t j, int q) { return d * static_cast<float>((q | fifth_bit(high, j)) - 16); });
}

void q5_1(const char* block, float* numbers) {
  const float d = half_at(block, 0), m = half_at(block, 2);
  const Byte* high = bytes_at(block, 4);
  decode_nibbles(bytes_at(block, 8), numbers,
                 [&](std::size_t j, int q) { return d * static_cast<float>(q | fifth_bit(high, j)) + m; });
}

void q8_0(const char* block, float* numbers) {
  const float d = half_at(block, 0);
  const Byte* q = bytes_at(block, 2);
  for (std::size_t j = 0; j < 32; ++j) numbers[j] = d * static_cast<float>(signed_byte(q[j]));
}

/// Factor and offset of one of eight parts of a block, six bits each, packed into twelve bytes.
struct PartScale {
  float d, m;
};
PartScale scale_of_part(const char* block, std::size_t part) {
  const Byte* packed = bytes_at(block, 4);
  int scale, least;
  if (part < 4) {
    scale = packed[part] & 63;
    least = packed[part + 4] & 63;
  } else {
    scale = (packed[part + 4] & 15) | (packed[part - 4] >> 6) << 4;
    least = packed[part + 4] >> 4 | (packed[part] >> 6) << 4;
  }
  return {half_at(block, 0) * static_cast<float>(scale), half_at(block, 2) * static_cast<float>(least)};
}

/// Decodes eight parts of 32 numbers; two parts share their bytes. high holds their fifth bits, or is
/// nullptr.
void decode_parts(const char* block, const Byte* low, const Byte* high, float* numbers) {
  for (std::size_t part = 0; part < 8; ++part) {
    const auto [d, m] = scale_of_part(block, part);
    for (std::size_t l = 0; l < 32; ++l) {
      const Byte byte = low[part / 2 * 32 + l];
      const int four = part % 2 == 0 ? byte & 15 : byte >> 4;
      const int fifth = high ? (high[l] >> part & 1) << 4 : 0;
      numbers[part * 32 + l] = d * static_cast<float>(four | fifth) - m;
    }
  }
}

void q4_k(const char* block, float* numbers) {
  decode_parts(block, bytes_at(block, 16), nullptr, numbers);
}

void q5_k(const char* block, float* numbers) {
  decode_parts(block, bytes_at(block, 48), bytes_at(block, 16), numbers);
}

void q6_k(const char* block, float* numbers) {
  const float d = half_at(block, 208);
  const Byte* scales = bytes_at(block, 192);
  for (std::size_t k = 0; k < 256; ++k) {
    const std::size_t half = k / 128, quarter = k % 128 / 32, l = k % 32;
    const Byte byte = bytes_at(block, half * 64)[l + (quarter % 2) * 32];
    const int four = quarter < 2 ? byte & 15 : byte >> 4;
    const int two = bytes_at(block, 128 + half * 32)[l] >> 2 * quarter & 3;
    const float scale = d * static_cast<float>(signed_byte(scales[half * 8 + quarter * 2 + l / 16]));
    numbers[k] = scale * static_cast<float>((four | two << 4) - 32);
  }
}

constexpr std::array gguf_types{
    GgufType{0, "F32", 1, 4, Dtype::f32, nullptr},    GgufType{1, "F16", 1, 2, Dtype::f16, nullptr},
    GgufType{30, "BF16", 1, 2, Dtype::bf16, nullptr}, GgufType{28, "F64", 1, 8, Dtype::f64, nullptr},
    GgufType{2, "Q4_0", 32, 18, Dtype::f32, q4_0},    GgufType{3, "Q4_1", 32, 20, Dtype::f32, q4_1},
    GgufType{6, "Q5_0", 32, 22, Dtype::f32, q5_0},    GgufType{7, "Q5_1", 32, 24, Dtype::f32, q5_1},
    GgufType{8, "Q8_0", 32, 34, Dtype::f32, q8_0},    GgufType{12, "Q4_K", 256, 144, Dtype::f32, q4_k},
    GgufType{13, "Q5_K", 256, 176, Dtype::f32, q5_k}, GgufType{14, "Q6_K", 256, 210, Dtype::f32, q6_k}};

}  // namespace

Dtype decoded_dtype(const GgufType& type) {
  return type.dtype == Dtype::f64 ? Dtype::f64 : Dtype::f32;
}

const GgufType* gguf_type(std::uint32_t number) {
  return find_by(gguf_types, number, &GgufType::number);
}

namespace {

using std::uint32_t, std::uint64_t;

constexpr uint64_t max_keys = 1u << 16, max_tensors = 1u << 20, max_key_bytes = 1u << 16, max_axes = 4;
constexpr uint64_t max_header_bytes = uint64_t{1} << 28, max_items = 1u << 24;
constexpr uint64_t read_at_once = 1u << 16;

/// Type of a metadata value, as numbered in GGUF.
enum ValueType : uint32_t {
  of_u8,
  of_i8,
  of_u16,
  of_i16,
  of_u32,
  of_i32,
  of_f32,
  of_bool,
  of_text,
  of_list,
  of_u64,
  of_i64,
  of_f64,
  n_value_types
};
constexpr std::size_t value_bytes[]{1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};  // minimum sizes

/// Sequential reader of a header, which never reads beyond the end of the file.
class HeaderReader {
 public:
  explicit HeaderReader(const system::OpenFile& file) : file_(file), place_(file.path().string() + ": ") {}

  uint64_t at() const { return at_; }
  uint64_t left() const { return file_.size() - at_; }

  std::string_view take(uint64_t count) {
    if (count > left())
      fail(fmt::format("expected {} bytes more of its header at byte {}, got {}", count, at_, left()));
    if (at_ + count > max_header_bytes)
      fail(fmt::format("expected a header of at most {} bytes, got more", max_header_bytes));
    if (at_ < begin_ || at_ + count > begin_ + buffer_.size()) {
      begin_ = at_;
      file_.read(at_, std::min(left(), std::max(count, read_at_once)), buffer_);
    }
    const std::string_view bytes = std::string_view(buffer_).substr(at_ - begin_, count);
    at_ += count;
    return bytes;
  }
  uint64_t unsigned_number(std::size_t n_bytes) { return little_endian(take(n_bytes)); }
  std::string read_text(uint64_t max_length) {
    const uint64_t length = unsigned_number(8);
    if (length > std::min(left(), max_length))
      fail(fmt::format("expected a text of at most {} bytes at byte {}, it claims {}",
                       std::min(left(), max_length), at_ - 8, length));
    return std::string(take(length));
  }
  /// Reads a count of items of at least bytes_each bytes. Throws core::Error above most.
  uint64_t read_count(const char* what, uint64_t most, uint64_t bytes_each) {
    const uint64_t count = unsigned_number(8), fit = std::min(most, left() / bytes_each);
    if (count > fit) fail(fmt::format("expected at most {} {}, it claims {}", fit, what, count));
    return count;
  }
  /// Reads the length of a list; all lists together have at most max_items items.
  uint64_t read_list_length(const std::string& key, uint64_t bytes_each) {
    const uint64_t count = read_count((key + " items").c_str(), items_left_, bytes_each);
    items_left_ -= count;
    return count;
  }
  [[noreturn]] void fail(const std::string& what) const { throw Error(place_ + what); }

 private:
  const system::OpenFile& file_;
  std::string place_;
  std::string buffer_;
  uint64_t begin_ = 0, at_ = 0, items_left_ = max_items;
};

template <class Signed>
double signed_value(uint64_t bits) {
  return static_cast<double>(static_cast<Signed>(bits));
}

/// Reads a number; type is neither text nor list.
double number_of(HeaderReader& reader, uint32_t type) {
  const uint64_t bits = reader.unsigned_number(value_bytes[type]);
  switch (type) {
    case of_i8:
      return signed_value<std::int8_t>(bits);
    case of_i16:
      return signed_value<std::int16_t>(bits);
    case of_i32:
      return signed_value<std::int32_t>(bits);
    case of_i64:
      return signed_value<std::int64_t>(bits);
    case of_f32:
      return std::bit_cast<float>(static_cast<uint32_t>(bits));
    case of_f64:
      return std::bit_cast<double>(bits);
    default:
      return static_cast<double>(bits);
  }
}

void read_single(HeaderReader& reader, uint32_t type, GgufValue& value) {
  if (type == of_text)
    value.texts.push_back(reader.read_text(max_header_bytes));
  else
    value.numbers.push_back(number_of(reader, type));
}

GgufValue read_value(HeaderReader& reader, const std::string& key, uint32_t type) {
  GgufValue value;
  const auto require_known = [&](uint32_t number) {
    if (number >= n_value_types)
      reader.fail(fmt::format("{}: expected a type of values below {}, got {}", key, +n_value_types, number));
  };
  require_known(type);
  if (type != of_list) {
    read_single(reader, type, value);
    return value;
  }
  value.is_list = true;
  const auto item = static_cast<uint32_t>(reader.unsigned_number(4));
  require_known(item);
  if (item == of_list) reader.fail(key + ": expected a list of numbers or texts, got one of lists");
  const uint64_t count = reader.read_list_length(key, value_bytes[item]);
  (item == of_text ? value.texts.reserve(count) : value.numbers.reserve(count));
  for (uint64_t k = 0; k < count; ++k) read_single(reader, item, value);
  return value;
}

GgufTensor read_info(HeaderReader& reader) {
  GgufTensor tensor{reader.read_text(max_key_bytes), {}, nullptr, 0};
  const uint64_t n_axes = reader.unsigned_number(4);
  if (n_axes > max_axes)
    reader.fail(fmt::format("{}: expected at most {} axes, got {}", tensor.name, max_axes, n_axes));
  for (uint64_t k = 0; k < n_axes; ++k) {
    const uint64_t length = reader.unsigned_number(8);
    if (!std::in_range<std::size_t>(length))
      reader.fail(fmt::format("{}: too long: {}", tensor.name, length));
    tensor.shape.insert(tensor.shape.begin(), length);
  }
  const auto type = static_cast<uint32_t>(reader.unsigned_number(4));
  tensor.type = gguf_type(type);
  if (!tensor.type)
    reader.fail(fmt::format(
        "{}: expected F32, F16, BF16, F64, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K or Q6_K, got type {} of GGUF",
        tensor.name, type));
  tensor.offset = reader.unsigned_number(8);
  return tensor;
}

uint64_t alignment_in(const HeaderReader& reader, const std::map<std::string, GgufValue>& metadata) {
  const auto specified = metadata.find("general.alignment");
  if (specified == metadata.end()) return 32;
  const double number = specified->second.numbers.empty() ? 0 : specified->second.numbers.front();
  if (!(number >= 1 && number <= 1 << 20 && std::has_single_bit(static_cast<uint64_t>(number))))
    reader.fail("general.alignment: expected a power of two");
  return static_cast<uint64_t>(number);
}

/// Throws core::Error unless the rows of a tensor are whole blocks and its data lie within the file.
void check_place(const HeaderReader& reader, const GgufTensor& tensor, uint64_t n_bytes_of_data) {
  const auto count = count_of(tensor.shape);
  const std::size_t row = tensor.shape.empty() ? 1 : tensor.shape.back();
  if (!count || row % tensor.type->block != 0)
    reader.fail(fmt::format("{}: expected rows of a multiple of {} numbers, got {}", tensor.name,
                            tensor.type->block, shape_text(tensor.shape)));
  const uint64_t blocks = *count / tensor.type->block;
  if (tensor.offset > n_bytes_of_data || blocks > (n_bytes_of_data - tensor.offset) / tensor.type->bytes)
    reader.fail(
        fmt::format("{}: expected {} blocks of {} bytes from byte {} of the data, which are {} bytes long",
                    tensor.name, blocks, tensor.type->bytes, tensor.offset, n_bytes_of_data));
}

/// Returns "Numbers of type Q4_1, Q8_0 are read as the float32 that they stand for.", or nothing.
std::vector<std::string> notes_on(const GgufHeader& header) {
  std::set<std::string> packed;
  for (const GgufTensor& tensor : header.tensors)
    if (tensor.type->block > 1) packed.insert(tensor.type->name);
  if (packed.empty()) return {};
  return {"Numbers of type " + text::joined(packed, ", ") + " are read as the float32 that they stand for."};
}

}  // namespace

GgufHeader read_gguf_header(const system::OpenFile& file) {
  HeaderReader reader(file);
  if (file.size() < 24 || !looks_like_gguf(reader.take(4)))
    reader.fail(fmt::format("expected a GGUF file, got one of {} bytes that is none", file.size()));
  if (const uint64_t version = reader.unsigned_number(4); version != 2 && version != 3)
    reader.fail("expected GGUF of version 2 or 3, got " + std::to_string(version & 0xffffffff));
  GgufHeader header;
  const uint64_t n_tensors = reader.read_count("tensors", max_tensors, 24);
  const uint64_t n_keys = reader.read_count("keys", max_keys, 13);
  for (uint64_t k = 0; k < n_keys; ++k) {
    const std::string key = reader.read_text(max_key_bytes);
    const auto type = static_cast<uint32_t>(reader.unsigned_number(4));
    if (!header.metadata.emplace(key, read_value(reader, key, type)).second)
      reader.fail(key + ": expected once, got twice");
  }
  std::set<std::string> names;
  for (uint64_t k = 0; k < n_tensors; ++k) {
    header.tensors.push_back(read_info(reader));
    if (!names.insert(header.tensors.back().name).second)
      reader.fail(header.tensors.back().name + ": expected once, got twice");
  }
  const uint64_t alignment = alignment_in(reader, header.metadata);
  header.data_at = (reader.at() + alignment - 1) / alignment * alignment;
  if (header.data_at > file.size()) header.data_at = file.size();
  for (const GgufTensor& tensor : header.tensors) check_place(reader, tensor, file.size() - header.data_at);
  return header;
}

bool looks_like_gguf(std::string_view begin) {
  return begin.starts_with("GGUF");
}

GgufMetadata gguf_metadata(const std::filesystem::path& path) {
  const system::OpenFile file(path);
  return {path.string() + ": ", read_gguf_header(file).metadata};
}

TensorFile open_gguf(const std::filesystem::path& path, const StopToken& progress) {
  using readers::make_entry;
  const auto file = std::make_shared<const system::OpenFile>(path);
  const GgufHeader header = read_gguf_header(*file);
  progress.add(header.data_at);
  std::vector<TensorEntry> entries;
  for (const GgufTensor& tensor : header.tensors) {
    const GgufType& type = *tensor.type;
    entries.push_back(
        make_entry({tensor.name, decoded_dtype(type), tensor.shape},
                   StoredNumbers{file, header.data_at + tensor.offset, type.dtype,
                                 type.decode ? type.name : "", type.block, type.bytes, type.decode},
                   path.string() + ": "));
  }
  return {path, "gguf", std::move(entries), notes_on(header)};
}

void GgufMetadata::fail(const std::string& key, const std::string& expected) const {
  throw Error(place_ + key + ": expected " + expected);
}

std::optional<double> GgufMetadata::number(const std::string& key) const {
  const GgufValue* value = find(key);
  if (!value) return std::nullopt;
  if (value->is_list || value->numbers.size() != 1) fail(key, "a number");
  return value->numbers.front();
}

std::optional<std::size_t> GgufMetadata::whole(const std::string& key) const {
  const auto found = number(key);
  if (!found) return std::nullopt;
  if (!(*found >= 0 && *found <= 0x1p53 && *found == std::floor(*found))) fail(key, "a whole number from 0");
  return static_cast<std::size_t>(*found);
}

std::optional<std::string> GgufMetadata::text(const std::string& key) const {
  const GgufValue* value = find(key);
  if (!value) return std::nullopt;
  if (value->is_list || value->texts.size() != 1) fail(key, "a text");
  return value->texts.front();
}

const std::vector<std::string>& GgufMetadata::texts(const std::string& key) const {
  static const std::vector<std::string> none;
  const GgufValue* value = find(key);
  if (value && !value->numbers.empty()) fail(key, "a list of texts");
  return value ? value->texts : none;
}

const std::vector<double>& GgufMetadata::numbers(const std::string& key) const {
  static const std::vector<double> none;
  const GgufValue* value = find(key);
  if (value && !value->texts.empty()) fail(key, "a list of numbers");
  return value ? value->numbers : none;
}

std::size_t GgufMetadata::required_whole(const std::string& key) const {
  if (const auto found = whole(key)) return *found;
  fail(key, "a whole number, there is none");
}

std::string GgufMetadata::required_text(const std::string& key) const {
  if (const auto found = text(key)) return *found;
  fail(key, "a text, there is none");
}

}  // namespace core::formats
