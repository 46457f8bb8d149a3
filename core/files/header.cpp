#include "core/files/header.hpp"

#include <algorithm>
#include <bit>
#include <set>
#include <string_view>

#include "core/base/error.hpp"
#include "core/files/little_endian.hpp"

namespace core::formats {
namespace {

using std::uint32_t, std::uint64_t;

constexpr uint64_t most_keys = 1u << 16, most_tensors = 1u << 20, longest_key = 1u << 16, most_axes = 4;
constexpr uint64_t longest_header = uint64_t{1} << 28, most_items = 1u << 24;
constexpr uint64_t read_at_once = 1u << 16;

/// What the type of a value says, as GGUF numbers them.
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
constexpr std::size_t value_bytes[]{1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};  // at least

/// Reads a header from its beginning, and never beyond the end of the file.
class HeaderReader {
 public:
  explicit HeaderReader(const OpenFile& file) : file_(file), place_(file.path().string() + ": ") {}

  uint64_t at() const { return at_; }
  uint64_t left() const { return file_.size() - at_; }

  std::string_view take(uint64_t count) {
    if (count > left())
      fail("expected " + std::to_string(count) + " bytes more of its header at byte " + std::to_string(at_) +
           ", got " + std::to_string(left()));
    if (at_ + count > longest_header)
      fail("expected a header of at most " + std::to_string(longest_header) + " bytes, got more");
    if (at_ < begin_ || at_ + count > begin_ + buffer_.size()) {
      begin_ = at_;
      file_.read(at_, std::min(left(), std::max(count, read_at_once)), buffer_);
    }
    const std::string_view bytes = std::string_view(buffer_).substr(at_ - begin_, count);
    at_ += count;
    return bytes;
  }
  uint64_t unsigned_number(std::size_t n_bytes) { return little_endian(take(n_bytes)); }
  std::string text_of(uint64_t longest) {
    const uint64_t length = unsigned_number(8);
    if (length > std::min(left(), longest))
      fail("expected a text of at most " + std::to_string(std::min(left(), longest)) + " bytes at byte " +
           std::to_string(at_ - 8) + ", it claims " + std::to_string(length));
    return std::string(take(length));
  }
  /// A number of things of at least so many bytes each.
  uint64_t count_of_things(const char* what, uint64_t most, uint64_t bytes_each) {
    const uint64_t count = unsigned_number(8), fit = std::min(most, left() / bytes_each);
    if (count > fit)
      fail("expected at most " + std::to_string(fit) + " " + what + ", it claims " + std::to_string(count));
    return count;
  }
  /// Items of a list: not more than are left of those that all lists together may have.
  uint64_t count_of_items(const std::string& key, uint64_t bytes_each) {
    const uint64_t count = count_of_things((key + " items").c_str(), items_left_, bytes_each);
    items_left_ -= count;
    return count;
  }
  [[noreturn]] void fail(const std::string& what) const { throw Error(place_ + what); }

 private:
  const OpenFile& file_;
  std::string place_;
  std::string buffer_;
  uint64_t begin_ = 0, at_ = 0, items_left_ = most_items;
};

template <class Signed>
double signed_value(uint64_t bits) {
  return static_cast<double>(static_cast<Signed>(bits));
}

/// A number of a type that is none of text and list.
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
    value.texts.push_back(reader.text_of(longest_header));
  else
    value.numbers.push_back(number_of(reader, type));
}

GgufValue read_value(HeaderReader& reader, const std::string& key, uint32_t type) {
  GgufValue value;
  const auto require_known = [&](uint32_t number) {
    if (number >= n_value_types)
      reader.fail(key + ": expected a type of values below " + std::to_string(n_value_types) + ", got " +
                  std::to_string(number));
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
  const uint64_t count = reader.count_of_items(key, value_bytes[item]);
  (item == of_text ? value.texts.reserve(count) : value.numbers.reserve(count));
  for (uint64_t k = 0; k < count; ++k) read_single(reader, item, value);
  return value;
}

GgufTensor read_info(HeaderReader& reader) {
  GgufTensor tensor{reader.text_of(longest_key), {}, nullptr, 0};
  const uint64_t n_axes = reader.unsigned_number(4);
  if (n_axes > most_axes)
    reader.fail(tensor.name + ": expected at most " + std::to_string(most_axes) + " axes, got " +
                std::to_string(n_axes));
  for (uint64_t k = 0; k < n_axes; ++k) tensor.shape.insert(tensor.shape.begin(), reader.unsigned_number(8));
  const auto type = static_cast<uint32_t>(reader.unsigned_number(4));
  tensor.type = gguf_type(type);
  if (!tensor.type)
    reader.fail(
        tensor.name +
        ": expected F32, F16, BF16, F64, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K or Q6_K, got type " +
        std::to_string(type) + " of GGUF");
  tensor.offset = reader.unsigned_number(8);
  return tensor;
}

uint64_t alignment_in(const HeaderReader& reader, const std::map<std::string, GgufValue>& metadata) {
  const auto said = metadata.find("general.alignment");
  if (said == metadata.end()) return 32;
  const double number = said->second.numbers.empty() ? 0 : said->second.numbers.front();
  if (!(number >= 1 && number <= 1 << 20 && std::has_single_bit(static_cast<uint64_t>(number))))
    reader.fail("general.alignment: expected a power of two");
  return static_cast<uint64_t>(number);
}

/// Bytes of a tensor's numbers, which must be whole blocks and lie within the file.
void check_place(const HeaderReader& reader, const GgufTensor& tensor, uint64_t n_bytes_of_data) {
  const auto count = count_of(tensor.shape);
  const std::size_t row = tensor.shape.empty() ? 1 : tensor.shape.back();
  if (!count || row % tensor.type->block != 0)
    reader.fail(tensor.name + ": expected rows of a multiple of " + std::to_string(tensor.type->block) +
                " numbers, got " + shape_text(tensor.shape));
  const uint64_t blocks = *count / tensor.type->block;
  if (tensor.offset > n_bytes_of_data || blocks > (n_bytes_of_data - tensor.offset) / tensor.type->bytes)
    reader.fail(tensor.name + ": expected " + std::to_string(blocks) + " blocks of " +
                std::to_string(tensor.type->bytes) + " bytes from byte " + std::to_string(tensor.offset) +
                " of the data, which are " + std::to_string(n_bytes_of_data) + " bytes long");
}

}  // namespace

GgufHeader read_gguf_header(const OpenFile& file) {
  HeaderReader reader(file);
  if (file.size() < 24 || !looks_like_gguf(reader.take(4)))
    reader.fail("expected a GGUF file, got one of " + std::to_string(file.size()) + " bytes that is none");
  if (const uint64_t version = reader.unsigned_number(4); version != 2 && version != 3)
    reader.fail("expected GGUF of version 2 or 3, got " + std::to_string(version & 0xffffffff));
  GgufHeader header;
  const uint64_t n_tensors = reader.count_of_things("tensors", most_tensors, 24);
  const uint64_t n_keys = reader.count_of_things("keys", most_keys, 13);
  for (uint64_t k = 0; k < n_keys; ++k) {
    const std::string key = reader.text_of(longest_key);
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

}  // namespace core::formats
