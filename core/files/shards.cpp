#include "core/files/shards.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <system_error>
#include <utility>

#include "core/base/error.hpp"
#include "core/files/file.hpp"
#include "core/files/json.hpp"
#include "core/files/pytorch.hpp"
#include "core/files/safetensors.hpp"
#include "core/files/strangers.hpp"

namespace core::formats::readers {
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
  const std::string begin = read_begin(path, 4096);
  if (const std::string words = words_on_stranger(path, begin); !words.empty())
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
    if (!looks_like_index(path, read_begin(path, 4096))) return {};
    const Json json = parse_json(read_file(path, largest_index), path.string());
    for (const auto& [tensor, file] : json.required("weight_map").members())
      if (file.is_text() && is_file_name(file.text())) names.insert(file.text());
  } catch (const Error&) {
    return {};  // no shard of it is opened either
  }
  return {names.begin(), names.end()};
}

TensorFile open_index(const fs::path& path, const Token& progress) {
  const Json json = parse_json(read_file(path, largest_index), path.string());
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
