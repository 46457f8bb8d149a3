#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <map>
#include <unordered_set>

#include "core/base/text.hpp"
#include "core/base/utf8.hpp"
#include "core/files/json.hpp"
#include "core/files/little_endian.hpp"
#include "core/files/pickle.hpp"
#include "core/files/readers.hpp"

/// Files of torch.save: a Python pickle that describes tensors, and their numbers.
namespace core::formats::readers {
namespace {

using std::uint64_t;
using namespace std::string_view_literals;

// Limits beyond which a file is refused.
constexpr uint64_t max_pickle = uint64_t{1} << 26;  // bytes
constexpr std::size_t max_depth = 64, max_name = 1000, max_name_bytes = std::size_t{1} << 24;

/// Returns whether bytes begin like a pickle of protocol 0 or 1.
bool looks_like_old_pickle(std::string_view begin) {
  // A dict, list, tuple, name, number or text, which ends with its line or is memoized.
  constexpr std::array begins{"(]"sv, "(}"sv, "(d"sv, "(l"sv, "(i"sv, "(c"sv, "}q"sv,
                              "]q"sv, "(K"sv, "(I"sv, "(S"sv, "(V"sv, "(X"sv, "(U"sv};
  if (std::ranges::any_of(begins, [&](std::string_view some) { return begin.starts_with(some); }))
    return true;
  const std::size_t end = begin.find('\n');
  if (end == begin.npos || end < 2) return false;
  const std::string_view line = begin.substr(1, end - 1);
  constexpr std::string_view digits = "-0123456789L";
  if (begin[0] == 'L' || begin[0] == 'I') return line.find_first_not_of(digits) == line.npos;
  return begin[0] == 'c' && line.find_first_of(" ,;:\t") == line.npos;
}

/// Tensors of a pickle by name, and the rest of its content.
struct PickleContent {
  struct NamedTensor {
    std::string name;
    std::size_t tensor;  ///< index into Pickle::tensors
  };
  std::vector<NamedTensor> tensors;
  /// Values that are left out: how many, and the first few.
  struct LeftOut {
    std::size_t n = 0;
    std::vector<std::string> first;

    void add(std::string words) {
      constexpr std::size_t max_named = 3;
      if (++n <= max_named) first.push_back(std::move(words));
    }
    /// Returns "epoch, loss, lr and 35 more".
    std::string text() const {
      const std::size_t more = n - first.size();
      return text::joined(first, ", ", {}, more == 0 ? " and " : ", ") +
             (more == 0 ? "" : fmt::format(" and {} more", more));
    }
  };
  LeftOut plain;    ///< plain values, by their names
  LeftOut unknown;  ///< objects, by their names and those of their functions or classes
};

/// Collector of names: nested keys are joined by dots; a single tensor is named like the file.
///
/// Leaves out objects and plain values. Throws core::Error, "PLACEwhat is wrong", when there is no tensor,
/// two have one name, a key is not a name, or the nesting is too deep.
class TensorNameCollector {
 public:
  TensorNameCollector(const Pickle& pickle, const std::string& stem, const std::string& place)
      : pickle_(pickle), stem_(stem), place_(place) {}

  PickleContent all() {
    visit(pickle_.root, "", 0);
    if (!names_.tensors.empty()) return std::move(names_);
    if (!pickle_.module_problem.empty()) throw Error(place_ + pickle_.module_problem);
    if (problem_.empty() && !pickle_.objects.empty()) problem_ = pickle_.objects.front().problem;
    throw Error(place_ + (problem_.empty() ? "expected tensors, got none in it" : problem_));
  }

 private:
  void visit(PickleValue::Index index, const std::string& name, std::size_t depth) {
    const PickleValue& value = pickle_.values[index];
    if (depth > max_depth) throw Error(place_ + "expected at most 64 levels of dicts and lists, got more");
    if (++n_visited_ > max_pickled_values) throw Error(place_ + "expected at most 2^20 values, got more");
    if (value.kind == PickleKind::tensor) {
      add(name.empty() ? stem_ : name, static_cast<std::size_t>(value.whole));
    } else if (value.kind == PickleKind::dict) {
      visit_pairs(value, name, depth);
    } else if (value.kind == PickleKind::list || value.kind == PickleKind::tuple) {
      visit_items(value, name, depth);
    } else if (value.kind == PickleKind::object) {
      const UnknownObject& object = pickle_.object_of(value);
      const std::size_t n_before = names_.tensors.size();
      object.is_of_keys ? visit_pairs(value, name, depth) : visit_items(value, name, depth);
      if (names_.tensors.size() == n_before) leave_out(name, object.name, object.problem);
    } else if (value.kind == PickleKind::name && !dtype_of_torch_name(value.text)) {
      leave_out(name, value.text, problem_of_name(value.text));
    } else {
      names_.plain.add(name.empty() ? stem_ : name);
    }
  }

  void visit_pairs(const PickleValue& value, const std::string& name, std::size_t depth) {
    for (std::size_t k = 0; k < value.items.size(); k += 2) {
      const PickleValue& key = pickle_.values[value.items[k]];
      if (key.kind == PickleKind::object)
        leave_out(name, pickle_.object_of(key).name + " as a key", pickle_.object_of(key).problem);
      else
        visit(value.items[k + 1], join_names(name, key_of(key)), depth + 1);
    }
  }
  void visit_items(const PickleValue& value, const std::string& name, std::size_t depth) {
    for (std::size_t k = 0; k < value.items.size(); ++k)
      visit(value.items[k], join_names(name, std::to_string(k)), depth + 1);
  }

  void leave_out(const std::string& name, const std::string& of, const std::string& problem) {
    if (problem_.empty()) problem_ = problem;
    names_.unknown.add((name.empty() ? stem_ : name) + " (" + printable_name(of) + ")");
  }

  std::string key_of(const PickleValue& key) const {
    if (key.kind == PickleKind::whole) return std::to_string(key.whole);
    if (key.kind != PickleKind::text || key.text.empty() || !text::is_utf8(key.text))
      throw Error(place_ + "expected dicts with names or whole numbers as their keys, got " +
                  (key.kind == PickleKind::text ? quoted_briefly(key.text) : "another"));
    return key.text;
  }

  std::string join_names(const std::string& name, const std::string& key) const {
    if (name.size() + key.size() > max_name)
      throw Error(place_ + "expected names of at most 1000 bytes, got " + quoted_briefly(name + "." + key));
    return name.empty() ? key : name + "." + key;
  }

  void add(const std::string& name, std::size_t tensor) {
    n_name_bytes_ += name.size();
    if (names_.tensors.size() == max_pickled_tensors || n_name_bytes_ > max_name_bytes)
      throw Error(place_ + "expected at most 2^16 tensors, got more");
    if (!known_.insert(name).second) throw Error(place_ + "two tensors are called " + quoted_briefly(name));
    names_.tensors.push_back({name, tensor});
  }

  const Pickle& pickle_;
  const std::string& stem_;
  const std::string& place_;
  PickleContent names_;
  std::unordered_set<std::string> known_;
  std::string problem_;  ///< of the first object that is left out
  std::size_t n_visited_ = 0, n_name_bytes_ = 0;
};

constexpr std::string_view legacy_magic = "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
constexpr std::int64_t legacy_protocol = 1001;
constexpr std::size_t first_bytes = 64;  // to include the first member's name or the magic number

/// The bytes of a storage.
struct StorageBytes {
  uint64_t n_bytes = 0;
  Fetch fetch;
  uint64_t begin = 0;  ///< offset of its first byte in fetch
};
using FindStorage = std::function<StorageBytes(const PickledStorage&)>;

/// Returns the bytes of count numbers, or more than any file has.
uint64_t bytes_of(uint64_t count, Dtype dtype) {
  const uint64_t each = dtype_bytes(dtype);
  return count > UINT64_MAX / each ? UINT64_MAX : count * each;
}

std::string words_on_strides(const PickledTensor& tensor) {
  return fmt::format("{} with strides {} from {}", shape_text(tensor.shape),
                     shape_text({tensor.strides.begin(), tensor.strides.end()}), tensor.offset);
}

/// Throws core::Error unless a tensor is within its storage of n_items and repeats numbers no more often than
/// a compressed file could.
void check_tensor(const PickledTensor& tensor, uint64_t n_items, const std::string& place) {
  constexpr uint64_t always_fine = uint64_t{1} << 20, max_repeats = 1024;
  const auto span = span_of(tensor.shape, tensor.strides);
  const auto count = count_of(tensor.shape);
  if (!count || !span || *span > n_items || tensor.offset > n_items - *span)
    throw Error(fmt::format("{}expected it within its storage of {} numbers, got {}", place, n_items,
                            words_on_strides(tensor)));
  if (*count > always_fine && *count / max_repeats > *span)
    throw Error(place + "expected at most 1024 times as many numbers as it has stored, got " +
                words_on_strides(tensor));
}

TensorEntry entry_of_tensor(const PickleContent::NamedTensor& named, const Pickle& pickle,
                            const FindStorage& find, bool big_endian, const std::string& file_place) {
  const PickledTensor& tensor = pickle.tensors[named.tensor];
  const PickledStorage& storage = pickle.storages[tensor.storage];
  RawTensor raw;
  raw.info = {named.name, tensor.dtype, tensor.shape};
  raw.item_bytes = dtype_bytes(tensor.dtype);
  raw.big_endian = big_endian;
  raw.strides = tensor.strides;
  raw.place = file_place + named.name + ": ";
  const StorageBytes stored = find(storage);
  if (const uint64_t claimed = bytes_of(storage.count, storage.dtype); claimed != stored.n_bytes)
    throw Error(fmt::format("{}expected a storage of {} bytes, got {}", raw.place, claimed, stored.n_bytes));
  check_tensor(tensor, stored.n_bytes / raw.item_bytes, raw.place);
  raw.fetch = stored.fetch;
  raw.begin = stored.begin + tensor.offset * raw.item_bytes;
  return make_entry(std::move(raw));
}

TensorFile file_of_pickle(const std::filesystem::path& path, const Pickle& pickle, const FindStorage& find,
                          bool big_endian, const StopToken& progress) {
  const std::string place = path.string() + ": ";
  const PickleContent names = TensorNameCollector(pickle, path.stem().string(), place).all();
  std::vector<TensorEntry> entries;
  for (const auto& named : names.tensors) {
    progress.add(0);
    entries.push_back(entry_of_tensor(named, pickle, find, big_endian, place));
  }
  std::vector<std::string> notes;
  if (names.unknown.n > 0)
    notes.push_back("Left out, as only tensors are read: " + names.unknown.text() + ".");
  if (names.plain.n > 0) notes.push_back("Left out as no tensors: " + names.plain.text() + ".");
  return {path, "pytorch", std::move(entries), std::move(notes)};
}

/// Members of an archive by their names inside its folder.
using ArchiveMembers = std::map<std::string, const ZipMember*, std::less<>>;

ArchiveMembers members_of(const ZipArchive& archive, const std::string& place) {
  const auto& all = archive.members();
  const auto pickle = std::ranges::find_if(all, is_torch_pickle_name, &ZipMember::name);
  if (pickle == all.end()) throw Error(place + "expected an archive of torch.save, got one without data.pkl");
  const std::string folder =
      pickle->name.substr(0, pickle->name.size() - std::string_view("data.pkl").size());
  ArchiveMembers members;
  for (const ZipMember& member : all)
    if (member.name.starts_with(folder)) members[member.name.substr(folder.size())] = &member;
  return members;
}

const ZipMember& require_member(const ArchiveMembers& members, std::string_view name,
                                const std::string& place) {
  const auto found = members.find(name);
  if (found == members.end()) throw Error(place + "damaged: expected the member " + quoted_briefly(name));
  if (!found->second->problem.empty()) throw Error(place + std::string(name) + ": " + found->second->problem);
  return *found->second;
}

bool is_big_endian(const ZipArchive& archive, const ArchiveMembers& members, const std::string& place) {
  if (!members.contains("byteorder")) return false;  // not written before PyTorch 2.1
  const std::string order = archive.begin(require_member(members, "byteorder", place), 16);
  if (order != "little" && order != "big")
    throw Error(place + "byteorder: expected little or big, got " + quoted_briefly(order));
  return order == "big";
}

TensorFile open_archive(const std::filesystem::path& path, const StopToken& progress) {
  const std::string place = path.string() + ": ";
  const auto archive = std::make_shared<const ZipArchive>(path);
  const ArchiveMembers members = members_of(*archive, place);
  if (members.contains("constants.pkl"))
    throw Error(place + "holds a TorchScript program, only tensors can be read: save module.state_dict()");
  const ZipMember& member = require_member(members, "data.pkl", place);
  if (member.size > max_pickle)
    throw Error(fmt::format("{}data.pkl: expected at most {} bytes, got {}", place, max_pickle, member.size));
  const std::string content = archive->bytes(member, 0, member.size, progress);
  uint64_t at = 0;
  const Pickle pickle = read_pickle(content, at, place);
  const FindStorage find = [&](const PickledStorage& storage) -> StorageBytes {
    const ZipMember& data = require_member(members, "data/" + storage.key, place);
    return {data.size, fetch_from(archive, data)};
  };
  return file_of_pickle(path, pickle, find, is_big_endian(*archive, members, place), progress);
}

/// Offsets and bytes of the storages after the pickles of a legacy file.
using Storages = std::map<std::string, std::pair<uint64_t, uint64_t>, std::less<>>;

/// Returns the storages, the first at byte `at`; each follows the count of its numbers.
Storages storages_after(const system::OpenFile& file, uint64_t at, const Pickle& pickle, const Pickle& keys) {
  std::map<std::string_view, const PickledStorage*> known;
  for (const PickledStorage& storage : pickle.storages) known.emplace(storage.key, &storage);
  Storages storages;
  const auto fail = [&](const std::string& what) {
    throw Error(fmt::format("{}: damaged pickle: {} at byte {}", file.path().string(), what, at));
  };
  for (const auto index : keys.values[keys.root].items) {
    const std::string& key = keys.values[index].text;
    const auto storage = known.find(key);
    if (storage == known.end()) fail("expected the key of a storage, got " + quoted_briefly(key));
    if (file.size() - at < 8) fail("expected a storage, got the end");
    const uint64_t n_bytes = bytes_of(little_endian(file.bytes(at, 8)), storage->second->dtype);
    at += 8;
    if (n_bytes > file.size() - at) fail(fmt::format("expected a storage of {} bytes, got the end", n_bytes));
    storages[key] = {at, n_bytes};
    at += n_bytes;
  }
  return storages;
}

/// Reads a pickle that holds only plain values.
Pickle read_plain(std::string_view content, uint64_t& at, const std::string& place) {
  Pickle pickle = read_pickle(content, at, place);
  if (!pickle.objects.empty()) throw Error(place + pickle.objects.front().problem);
  return pickle;
}

TensorFile open_legacy(const std::filesystem::path& path, const StopToken& progress) {
  const std::string place = path.string() + ": ";
  const auto file = std::make_shared<const system::OpenFile>(path);
  const std::string content = file->bytes(0, std::min(file->size(), max_pickle));
  uint64_t at = 0;
  read_plain(content, at, place);  // the magic number
  const Pickle protocol = read_plain(content, at, place);
  if (const auto version = protocol.values[protocol.root].whole; version != legacy_protocol)
    throw Error(fmt::format("{}expected version 1001 of PyTorch's older format, got {}", place, version));
  read_plain(content, at, place);  // the machine that wrote it; storages are little-endian on any
  const Pickle pickle = read_pickle(content, at, place), keys = read_plain(content, at, place);
  const Storages storages = storages_after(*file, at, pickle, keys);
  const FindStorage find = [&](const PickledStorage& storage) -> StorageBytes {
    const auto found = storages.find(storage.key);
    if (found == storages.end())
      throw Error(place + "damaged: expected the storage " + quoted_briefly(storage.key));
    return {found->second.second, fetch_from(file), found->second.first};
  };
  return file_of_pickle(path, pickle, find, false, progress);
}

bool looks_like_pickle(std::string_view begin) {
  return begin.size() > 2 && begin[0] == '\x80' && begin[1] >= 2 && begin[1] <= 5;
}

/// Throws core::Error that describes the content of a pickle that torch.save did not write.
[[noreturn]] void refuse_pickle(const std::filesystem::path& path) {
  const std::string place = path.string() + ": ";
  const system::OpenFile file(path);
  const std::string content = file.bytes(0, std::min(file.size(), max_pickle));
  uint64_t at = 0;
  const Pickle pickle = read_pickle(content, at, place);
  if (!pickle.objects.empty()) TensorNameCollector(pickle, "", place).all();
  throw Error(place + "is a pickle without tensors: save them with torch.save, numpy.savez or safetensors");
}

}  // namespace

bool is_torch_pickle_name(std::string_view member) {
  return member == "data.pkl" || (member.ends_with("/data.pkl") && std::ranges::count(member, '/') == 1);
}

bool looks_like_pytorch(std::string_view begin) {
  constexpr std::size_t name_at = 30, length_at = 26;  // offsets in the first member's record
  if (!looks_like_zip(begin)) return looks_like_pickle(begin);
  return begin.size() > name_at &&
         is_torch_pickle_name(begin.substr(name_at, little_endian(begin.substr(length_at, 2))));
}

TensorFile open_pytorch(const std::filesystem::path& path, const StopToken& progress) {
  const std::string begin = system::read_prefix(path, first_bytes);
  if (looks_like_zip(begin)) return open_archive(path, progress);
  if (!looks_like_pickle(begin) && looks_like_old_pickle(begin)) refuse_old_pickle(path.string() + ": ");
  if (!looks_like_pickle(begin))
    throw Error(path.string() +
                ": expected a file of torch.save, an archive or a pickle, which begins in another way");
  if (begin.find(legacy_magic) != begin.npos) return open_legacy(path, progress);
  refuse_pickle(path);
}

}  // namespace core::formats::readers
