#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <system_error>
#include <utility>

#include "core/base/error.hpp"
#include "core/files/json.hpp"
#include "core/files/little_endian.hpp"
#include "core/files/readers.hpp"

namespace core::formats::readers {

namespace {

using std::uint64_t;

constexpr uint64_t length_bytes = 8;
constexpr uint64_t longest_safetensors_header = 100'000'000;  // as the library has it

constexpr std::array dtype_words{
    Word{"F64", Dtype::f64},   Word{"F32", Dtype::f32},         Word{"F16", Dtype::f16},
    Word{"BF16", Dtype::bf16}, Word{"F8_E4M3", Dtype::f8_e4m3}, Word{"F8_E5M2", Dtype::f8_e5m2},
    Word{"I64", Dtype::i64},   Word{"I32", Dtype::i32},         Word{"I16", Dtype::i16},
    Word{"I8", Dtype::i8},     Word{"U64", Dtype::u64},         Word{"U32", Dtype::u32},
    Word{"U16", Dtype::u16},   Word{"U8", Dtype::u8},           Word{"BOOL", Dtype::boolean},
};

/// A tensor and where its bytes are after the header.
struct Located {
  RawTensor raw;
  uint64_t begin, end;
};

std::vector<uint64_t> whole_numbers(const Json& place) {
  std::vector<uint64_t> numbers;
  for (const Json& item : place.items_if_any("a list of whole numbers")) numbers.push_back(item.whole(0));
  return numbers;
}

Located read_tensor(const Json& place, const std::string& name, const std::string& file_name) {
  place.expect_keys({"dtype", "shape", "data_offsets"});
  Located located{};
  located.raw.place = file_name + ": " + name + ": ";
  located.raw.info = {name, place.required("dtype").word(dtype_words), {}};
  for (const uint64_t length : whole_numbers(place.required("shape")))
    located.raw.info.shape.push_back(length);
  if (const std::size_t n = located.raw.info.shape.size(); n > max_dimensions)
    place.required("shape").fail("at most 32 dimensions", std::to_string(n));
  located.raw.item_bytes = dtype_bytes(located.raw.info.dtype);
  const Json offsets = place.required("data_offsets");
  const auto range = whole_numbers(offsets);
  if (range.size() != 2 || range[0] > range[1])
    offsets.fail("two offsets [begin, end], the first not the larger");
  located.begin = range[0];
  located.end = range[1];
  const auto n_bytes = byte_count(located.raw);
  if (!n_bytes || *n_bytes != located.end - located.begin)
    offsets.fail((n_bytes ? std::to_string(*n_bytes) : "more than 2^62") + " bytes for " +
                     dtype_name(located.raw.info.dtype) + " " + shape_text(located.raw.info.shape),
                 std::to_string(located.end - located.begin));
  return located;
}

/// Makes sure that the tensors follow one another without a hole and fill the file.
void check_order(std::vector<const Located*> tensors, uint64_t n_bytes, const std::string& file_name) {
  std::ranges::sort(tensors, {}, [](const Located* t) { return std::pair(t->begin, t->end); });
  uint64_t at = 0;
  for (const Located* t : tensors) {
    if (t->begin != at)
      throw Error(t->raw.place + "expected its bytes to begin at " + std::to_string(at) + ", where " +
                  (t->begin < at ? "those before it end, got " : "no other tensor is, got ") +
                  std::to_string(t->begin));
    at = t->end;
  }
  if (at != n_bytes)
    throw Error(file_name + ": expected " + std::to_string(at) + " bytes of tensors after the header, got " +
                std::to_string(n_bytes));
}

/// The header's length after it has been checked against the file's.
uint64_t checked_header_length(const system::OpenFile& file, const std::string& file_name) {
  if (file.size() < length_bytes)
    throw Error(file_name + ": expected a safetensors file, got one of " + std::to_string(file.size()) +
                " bytes");
  const uint64_t length = little_endian(file.bytes(0, length_bytes));
  if (length > file.size() - length_bytes || length > longest_safetensors_header)
    throw Error(file_name + ": expected a header of at most " +
                std::to_string(std::min(file.size() - length_bytes, longest_safetensors_header)) +
                " bytes, it claims " + std::to_string(length));
  return length;
}

}  // namespace

bool looks_like_safetensors(std::string_view begin) {
  return begin.size() > length_bytes && begin[length_bytes] == '{' &&
         little_endian(begin.substr(0, length_bytes)) <= longest_safetensors_header;
}

TensorFile open_safetensors(const std::filesystem::path& path, const Token& progress) {
  const std::string file_name = path.string();
  const auto file = std::make_shared<const system::OpenFile>(path);
  const uint64_t length = checked_header_length(*file, file_name), data_at = length_bytes + length;
  progress.add(length);
  const Json header = parse_json(file->bytes(length_bytes, length), file_name);
  if (!header.is_object()) throw Error(file_name + ": expected an object in the header");
  std::vector<Located> tensors;
  for (const auto& [name, json] : header.members())
    if (name != "__metadata__") tensors.push_back(read_tensor(json, name, file_name));
  std::vector<const Located*> pointers;
  for (const Located& t : tensors) pointers.push_back(&t);
  check_order(std::move(pointers), file->size() - data_at, file_name);

  std::vector<TensorFile::Entry> entries;
  for (Located& t : tensors) {
    t.raw.fetch = fetch_from(file, data_at + t.begin);
    const StoredNumbers stored{file, data_at + t.begin, t.raw.info.dtype, "", 1, t.raw.item_bytes};
    entries.push_back(entry_of(std::move(t.raw)));
    entries.back().stored = stored;
  }
  return {path, "safetensors", std::move(entries)};
}

namespace {

namespace fs = std::filesystem;

constexpr std::size_t largest_index = std::size_t{100} << 20;

/// A file that an index names, and how many of its tensors.
struct Shard {
  std::shared_ptr<const TensorFile> file;
  std::map<std::string, const TensorInfo*, std::less<>> tensors;
  std::size_t n_named = 0;
};

TensorFile opened(const fs::path& path, const Token& progress) {
  const std::string begin = system::read_begin(path, 4096);
  if (const std::string words = words_on_unreadable(path, begin); !words.empty())
    throw Error(path.string() + ": " + words);
  return looks_like_safetensors(begin) || path.extension() == ".safetensors"
             ? open_safetensors(path, progress)
             : open_pytorch(path, progress);
}

/// Whether a name is that of a file in the same folder, on every system.
bool is_file_name(const std::string& name) {
  const fs::path file = name;
  return !file.empty() && file == file.filename() && file != "." && file != ".." &&
         name.find_first_of(std::string_view("\\\0", 2)) == name.npos;
}

Shard shard_called(const Json& name, const fs::path& folder, const Token& progress) {
  const fs::path file = name.text();
  if (!is_file_name(name.text())) name.fail("the name of a file in the folder of the index");
  std::error_code ignored;
  if (!fs::exists(folder / file, ignored))
    throw Error(name.place() + "the file " + quoted_briefly(name.text()) + " is missing beside it");
  Shard shard{std::make_shared<const TensorFile>(opened(folder / file, progress)), {}, 0};
  for (const TensorInfo& info : shard.file->tensors()) shard.tensors[info.name] = &info;
  return shard;
}

}  // namespace

bool looks_like_index(const fs::path& path, std::string_view begin) {
  begin.remove_prefix(std::min(begin.find_first_not_of(" \t\r\n"), begin.size()));
  if (!begin.starts_with('{') || begin.find("\"attnscope\"") != begin.npos) return false;
  return begin.find("\"weight_map\"") != begin.npos || path.string().ends_with(".index.json");
}

std::vector<std::string> shards_named_by(const fs::path& path) {
  std::set<std::string> names;
  try {
    if (!looks_like_index(path, system::read_begin(path, 4096))) return {};
    const Json json = parse_json(system::read_file(path, largest_index), path.string());
    for (const auto& [tensor, file] : json.required("weight_map").members())
      if (file.is_text() && is_file_name(file.text())) names.insert(file.text());
  } catch (const Error&) {
    return {};  // no shard of it is opened either
  }
  return {names.begin(), names.end()};
}

TensorFile open_index(const fs::path& path, const Token& progress) {
  const Json json = parse_json(system::read_file(path, largest_index), path.string());
  std::map<std::string, Shard, std::less<>> shards;
  std::vector<TensorFile::Entry> entries;
  for (const auto& [name, file] : json.required("weight_map").members()) {
    progress.add(0);
    auto shard = shards.find(file.text());
    if (shard == shards.end())
      shard = shards.emplace(file.text(), shard_called(file, path.parent_path(), progress)).first;
    const auto found = shard->second.tensors.find(name);
    if (found == shard->second.tensors.end())
      throw Error(path.string() + ": expected the tensor " + quoted_briefly(name) + " in " + shard->first +
                  ", got none of that name");
    ++shard->second.n_named;
    entries.push_back({*found->second, [source = shard->second.file, name = name](
                                           std::span<const std::size_t> leading, const Token& p) {
                         return source->read(name, leading, p);
                       }});
    if (const StoredNumbers* stored = shard->second.file->stored(name)) entries.back().stored = *stored;
  }
  if (entries.empty()) throw Error(path.string() + ": weight_map: expected tensors, got none");
  std::vector<std::string> notes;
  for (const auto& [name, shard] : shards) {
    if (const std::size_t n = shard.tensors.size() - shard.n_named; n > 0)
      notes.push_back("Left out: " + std::to_string(n) + (n == 1 ? " tensor of " : " tensors of ") + name +
                      " that the index does not name.");
    for (const std::string& note : shard.file->notes()) notes.push_back(name + ": " + note);
  }
  return {path, "index", std::move(entries), std::move(notes)};
}

}  // namespace core::formats::readers
