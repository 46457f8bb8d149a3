#include <fmt/core.h>
#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <system_error>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/files/json.hpp"
#include "core/files/little_endian.hpp"
#include "core/files/readers.hpp"

namespace core::formats::readers {

namespace {

using std::uint64_t;

constexpr uint64_t length_bytes = 8;
constexpr uint64_t max_safetensors_header = 100'000'000;  // as in the library

Dtype read_dtype(const Json& place) {
  const auto dtype =
      place.is_text() ? find_dtype(place.text(), &DtypeNames::safetensors) : std::optional<Dtype>();
  if (!dtype)
    place.fail("one of \"" +
               text::joined(dtypes().first(dtypes().size() - 1), "\", \"", &DtypeNames::safetensors) + "\"");
  return *dtype;
}

LocatedTensor read_tensor(const Json& place, const std::string& name) {
  place.expect_keys({"dtype", "shape", "data_offsets"});
  LocatedTensor tensor{{name, read_dtype(place.required("dtype")), {}}};
  const Json shape = place.required("shape");
  for (const std::uint64_t length : shape.whole_numbers("a list of whole numbers"))
    tensor.info.shape.push_back(length);
  if (const std::size_t n = tensor.info.shape.size(); n > max_dimensions)
    shape.fail("at most 32 dimensions", std::to_string(n));
  const Json offsets = place.required("data_offsets");
  const auto range = offsets.whole_numbers("a list of whole numbers");
  if (range.size() != 2 || range[0] > range[1])
    offsets.fail("two offsets [begin, end], the first not the larger");
  tensor.begin = range[0], tensor.end = range[1];
  TensorShape lengths = tensor.info.shape;
  lengths.push_back(dtype_bytes(tensor.info.dtype));
  const auto n_bytes = count_of(lengths);
  if (!n_bytes || *n_bytes != tensor.end - tensor.begin)
    offsets.fail((n_bytes ? std::to_string(*n_bytes) : "more than 2^62") + " bytes for " +
                     dtype_name(tensor.info.dtype) + " " + shape_text(tensor.info.shape),
                 std::to_string(tensor.end - tensor.begin));
  return tensor;
}

/// Returns the header's length, checked against the file's.
uint64_t checked_header_length(const system::OpenFile& file, const std::string& file_name) {
  if (file.size() < length_bytes)
    throw Error(fmt::format("{}: expected a safetensors file, got one of {} bytes", file_name, file.size()));
  const uint64_t length = little_endian(file.bytes(0, length_bytes));
  if (length > file.size() - length_bytes || length > max_safetensors_header)
    throw Error(fmt::format("{}: expected a header of at most {} bytes, it claims {}", file_name,
                            std::min(file.size() - length_bytes, max_safetensors_header), length));
  return length;
}

}  // namespace

bool looks_like_safetensors(std::string_view begin) {
  return begin.size() > length_bytes && begin[length_bytes] == '{' &&
         little_endian(begin.substr(0, length_bytes)) <= max_safetensors_header;
}

std::vector<LocatedTensor> read_safetensors_header(std::string_view text, uint64_t n_bytes,
                                                   const std::string& file_name) {
  const Json header = parse_json(text, file_name);
  if (!header.is_object()) throw Error(file_name + ": expected an object in the header");
  std::vector<LocatedTensor> tensors;
  for (const auto& [name, json] : header.members())
    if (name != "__metadata__") tensors.push_back(read_tensor(json, name));
  std::vector<const LocatedTensor*> by_offset;
  for (const LocatedTensor& tensor : tensors) by_offset.push_back(&tensor);
  std::ranges::sort(by_offset, {}, [](const LocatedTensor* t) { return std::pair(t->begin, t->end); });
  uint64_t at = 0;
  for (const LocatedTensor* t : by_offset) {
    if (t->begin != at)
      throw Error(
          fmt::format("{}: {}: expected its bytes to begin at {}, where {}{}", file_name, t->info.name, at,
                      t->begin < at ? "those before it end, got " : "no other tensor is, got ", t->begin));
    at = t->end;
  }
  if (at != n_bytes)
    throw Error(
        fmt::format("{}: expected {} bytes of tensors after the header, got {}", file_name, at, n_bytes));
  return tensors;
}

TensorFile open_safetensors(const std::filesystem::path& path, const StopToken& progress) {
  const std::string file_name = path.string();
  const auto file = std::make_shared<const system::OpenFile>(path);
  const uint64_t length = checked_header_length(*file, file_name), data_at = length_bytes + length;
  progress.add(length);
  std::vector<TensorEntry> entries;
  for (LocatedTensor& tensor :
       read_safetensors_header(file->bytes(length_bytes, length), file->size() - data_at, file_name)) {
    const Dtype dtype = tensor.info.dtype;
    entries.push_back(make_entry(
        std::move(tensor.info), StoredNumbers{file, data_at + tensor.begin, dtype, "", 1, dtype_bytes(dtype)},
        file_name + ": "));
  }
  return {path, "safetensors", std::move(entries)};
}

namespace {

namespace fs = std::filesystem;

constexpr std::size_t max_index_bytes = std::size_t{100} << 20;

/// A shard of an index, with the number of its tensors that the index names.
struct Shard {
  std::shared_ptr<const TensorFile> file;
  std::map<std::string, const TensorInfo*, std::less<>> tensors;
  std::size_t n_named = 0;
};

TensorFile open_shard_file(const fs::path& path, const StopToken& progress) {
  const std::string begin = system::read_prefix(path, 4096);
  if (const std::string words = unsupported_format_message(path, begin); !words.empty())
    throw Error(path.string() + ": " + words);
  return looks_like_safetensors(begin) || path.extension() == ".safetensors"
             ? open_safetensors(path, progress)
             : open_pytorch(path, progress);
}

/// Returns whether a name is a file name without a folder, on every system.
bool is_file_name(const std::string& name) {
  const fs::path file = name;
  return !file.empty() && file == file.filename() && file != "." && file != ".." &&
         name.find_first_of(std::string_view("\\\0", 2)) == name.npos;
}

Shard open_shard(const Json& name, const fs::path& folder, const StopToken& progress) {
  const fs::path file = name.text();
  if (!is_file_name(name.text())) name.fail("the name of a file in the folder of the index");
  std::error_code ignored;
  if (!fs::exists(folder / file, ignored))
    throw Error(name.place() + "the file " + quoted_briefly(name.text()) + " is missing beside it");
  Shard shard{std::make_shared<const TensorFile>(open_shard_file(folder / file, progress)), {}, 0};
  for (const TensorInfo& info : shard.file->tensors()) shard.tensors[info.name] = &info;
  return shard;
}

}  // namespace

bool looks_like_index(const fs::path& path, std::string_view begin) {
  begin.remove_prefix(std::min(begin.find_first_not_of(" \t\r\n"), begin.size()));
  if (!begin.starts_with('{') || begin.find("\"attnscope\"") != begin.npos) return false;
  return begin.find("\"weight_map\"") != begin.npos || path.string().ends_with(".index.json");
}

std::vector<std::string> list_shards(const fs::path& path) {
  std::set<std::string> names;
  try {
    if (!looks_like_index(path, system::read_prefix(path, 4096))) return {};
    const Json json = parse_json(system::read_file(path, max_index_bytes), path.string());
    for (const auto& [tensor, file] : json.required("weight_map").members())
      if (file.is_text() && is_file_name(file.text())) names.insert(file.text());
  } catch (const Error&) {
    return {};  // open_index() opens no shard of it either
  }
  return {names.begin(), names.end()};
}

TensorFile open_index(const fs::path& path, const StopToken& progress) {
  const Json json = parse_json(system::read_file(path, max_index_bytes), path.string());
  std::map<std::string, Shard, std::less<>> shards;
  std::vector<TensorEntry> entries;
  for (const auto& [name, file] : json.required("weight_map").members()) {
    progress.add(0);
    auto shard = shards.find(file.text());
    if (shard == shards.end())
      shard = shards.emplace(file.text(), open_shard(file, path.parent_path(), progress)).first;
    const auto found = shard->second.tensors.find(name);
    if (found == shard->second.tensors.end())
      throw Error(path.string() + ": expected the tensor " + quoted_briefly(name) + " in " + shard->first +
                  ", got none of that name");
    ++shard->second.n_named;
    entries.push_back({*found->second, [source = shard->second.file, name = name](
                                           std::span<const std::size_t> leading, const StopToken& p) {
                         return source->read(name, leading, p);
                       }});
    if (const StoredNumbers* stored = shard->second.file->stored(name)) entries.back().stored = *stored;
  }
  if (entries.empty()) throw Error(path.string() + ": weight_map: expected tensors, got none");
  std::vector<std::string> notes;
  for (const auto& [name, shard] : shards) {
    if (const std::size_t n = shard.tensors.size() - shard.n_named; n > 0)
      notes.push_back(fmt::format("Left out: {}{}{} that the index does not name.", n,
                                  n == 1 ? " tensor of " : " tensors of ", name));
    for (const std::string& note : shard.file->notes()) notes.push_back(name + ": " + note);
  }
  return {path, "index", std::move(entries), std::move(notes)};
}

}  // namespace core::formats::readers
