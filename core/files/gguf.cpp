#include "core/files/gguf.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/files/header.hpp"
#include "core/files/numbers.hpp"

namespace core::formats {
namespace {

constexpr std::uint64_t blocks_at_once = 1u << 14;

Tensor read_blocks(const OpenFile& file, std::uint64_t data_at, const GgufTensor& tensor,
                   std::span<const std::size_t> leading, const Token& progress) {
  Tensor part;
  part.name = tensor.name;
  part.dtype = dtype_read(*tensor.type);
  part.shape.assign(tensor.shape.begin() + static_cast<std::ptrdiff_t>(leading.size()), tensor.shape.end());
  const GgufType& type = *tensor.type;
  const std::uint64_t count = count_of(part.shape).value_or(0);
  std::uint64_t first = 0;
  for (std::size_t k = 0; k < tensor.shape.size(); ++k)
    first = first * tensor.shape[k] + (k < leading.size() ? leading[k] : 0);
  if (count % type.block != 0 || first % type.block != 0)
    throw Error(file.path().string() + ": " + tensor.name + ": expected a part of whole rows");
  part.numbers.resize(count);
  std::string buffer;
  std::vector<float> numbers(type.block);
  double* to = part.numbers.data();
  for (std::uint64_t block = 0, n_blocks = count / type.block; block < n_blocks; block += blocks_at_once) {
    const std::uint64_t n = std::min(blocks_at_once, n_blocks - block);
    file.read(data_at + tensor.offset + (first / type.block + block) * type.bytes, n * type.bytes, buffer);
    progress.add(buffer.size());
    if (!type.decode) {
      decode_numbers(buffer.data(), type.dtype, false, n, to);
      to += n;
      continue;
    }
    for (std::uint64_t k = 0; k < n; ++k) {
      type.decode(buffer.data() + k * type.bytes, numbers.data());
      to = std::copy(numbers.begin(), numbers.end(), to);
    }
  }
  return part;
}

/// "Numbers of type Q4_1, Q8_0 are read as the float32 that they stand for."
std::vector<std::string> notes_on(const GgufHeader& header) {
  std::set<std::string> packed;
  for (const GgufTensor& tensor : header.tensors)
    if (tensor.type->block > 1) packed.insert(tensor.type->name);
  if (packed.empty()) return {};
  return {"Numbers of type " + text::joined(packed, ", ") + " are read as the float32 that they stand for."};
}

}  // namespace

bool looks_like_gguf(std::string_view begin) {
  return begin.starts_with("GGUF");
}

GgufMetadata gguf_metadata(const std::filesystem::path& path) {
  const OpenFile file(path);
  return {path.string() + ": ", read_gguf_header(file).metadata};
}

TensorFile open_gguf(const std::filesystem::path& path, const Token& progress) {
  const auto file = std::make_shared<const OpenFile>(path);
  const GgufHeader header = read_gguf_header(*file);
  progress.add(header.data_at);
  std::vector<TensorFile::Entry> entries;
  for (const GgufTensor& tensor : header.tensors)
    entries.push_back(
        {{tensor.name, dtype_read(*tensor.type), tensor.shape},
         [file, tensor, at = header.data_at](std::span<const std::size_t> leading, const Token& token) {
           return read_blocks(*file, at, tensor, leading, token);
         }});
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
