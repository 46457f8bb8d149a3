#include "core/files/pytorch.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "core/base/error.hpp"
#include "core/files/file.hpp"
#include "core/files/json.hpp"
#include "core/files/little_endian.hpp"
#include "core/files/pickle.hpp"
#include "core/files/zip.hpp"

namespace core::formats::readers {
namespace {

using std::uint64_t;

constexpr std::string_view legacy_magic = "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
constexpr std::int64_t legacy_protocol = 1001;
constexpr uint64_t longest_pickle = uint64_t{1} << 26;  // of an archive, where few bytes may stand for many
constexpr std::size_t first_bytes =
    64;  // bytes in which the first member's name, or the magic number, stands

/// The bytes of a storage in a file.
struct Stored {
  uint64_t n_bytes = 0;
  bool deflated = false;
  Fetch fetch;
};
using FindStorage = std::function<Stored(const PickledStorage&)>;

/// Bytes of so many numbers, or beyond every file.
uint64_t bytes_of(uint64_t count, Dtype dtype) {
  const std::size_t lengths[] = {count, dtype_bytes(dtype)};
  return count_of(lengths).value_or(UINT64_MAX);
}

std::string words_on_strides(const PickledTensor& tensor) {
  return shape_text(tensor.shape) + " with strides " +
         shape_text({tensor.strides.begin(), tensor.strides.end()}) + " from " +
         std::to_string(tensor.offset);
}

/// Makes sure that a tensor lies within its storage of n_items, and repeats no number more often than a
/// compressed file could.
void check_tensor(const PickledTensor& tensor, uint64_t n_items, const std::string& place) {
  constexpr uint64_t always_fine = uint64_t{1} << 20, most_repeats = 1024;
  const auto span = span_of(tensor.shape, tensor.strides);
  const auto count = count_of(tensor.shape);
  if (!count || !span || *span > n_items || tensor.offset > n_items - *span)
    throw Error(place + "expected it within its storage of " + std::to_string(n_items) + " numbers, got " +
                words_on_strides(tensor));
  if (*count > always_fine && *count / most_repeats > *span)
    throw Error(place + "expected at most 1024 times as many numbers as it has stored, got " +
                words_on_strides(tensor));
}

TensorFile::Entry entry_of_tensor(const PickledNames::Named& named, const Pickle& pickle,
                                  const FindStorage& find, bool big_endian, const std::string& file_place) {
  const PickledTensor& tensor = pickle.tensors[named.tensor];
  const PickledStorage& storage = pickle.storages[tensor.storage];
  RawTensor raw;
  raw.info = {named.name, tensor.dtype, tensor.shape};
  raw.item_bytes = dtype_bytes(tensor.dtype);
  raw.big_endian = big_endian;
  raw.strides = tensor.strides;
  raw.place = file_place + named.name + ": ";
  Stored stored = find(storage);
  if (const uint64_t claimed = bytes_of(storage.count, storage.dtype); claimed != stored.n_bytes)
    throw Error(raw.place + "expected a storage of " + std::to_string(claimed) + " bytes, got " +
                std::to_string(stored.n_bytes));
  check_tensor(tensor, stored.n_bytes / raw.item_bytes, raw.place);
  raw.deflated = stored.deflated;
  raw.fetch = [fetch = std::move(stored.fetch), begin = tensor.offset * raw.item_bytes](
                  uint64_t from, uint64_t count, std::string& buffer, const Token& progress) {
    return fetch(begin + from, count, buffer, progress);
  };
  return entry_of(std::move(raw));
}

TensorFile file_of_pickle(const std::filesystem::path& path, const Pickle& pickle, const FindStorage& find,
                          bool big_endian, const Token& progress) {
  const std::string place = path.string() + ": ";
  const PickledNames names = named_tensors(pickle, path.stem().string(), place);
  std::vector<TensorFile::Entry> entries;
  for (const auto& named : names.tensors) {
    progress.add(0);
    entries.push_back(entry_of_tensor(named, pickle, find, big_endian, place));
  }
  std::vector<std::string> notes;
  if (names.n_others > 0) notes.push_back(words_on_others(names));
  return {path, "pytorch", std::move(entries), std::move(notes)};
}

Fetch fetch_of(std::shared_ptr<const OpenFile> file, uint64_t begin) {
  return [file = std::move(file), begin](uint64_t from, uint64_t count, std::string& buffer, const Token&) {
    file->read(begin + from, count, buffer);
    return std::string_view(buffer);
  };
}

Fetch fetch_of(std::shared_ptr<const ZipArchive> archive, const ZipMember& member) {
  return [archive = std::move(archive), member](uint64_t from, uint64_t count, std::string& buffer,
                                                const Token& progress) {
    buffer = archive->bytes(member, from, count, progress);
    return std::string_view(buffer);
  };
}

/// The members of an archive by their names after the folder that they are in.
using Members = std::map<std::string, const ZipMember*, std::less<>>;

Members members_of(const ZipArchive& archive, const std::string& place) {
  const auto& all = archive.members();
  const auto pickle = std::ranges::find_if(all, is_pickle_of_pytorch, &ZipMember::name);
  if (pickle == all.end()) throw Error(place + "expected an archive of torch.save, got one without data.pkl");
  const std::string folder =
      pickle->name.substr(0, pickle->name.size() - std::string_view("data.pkl").size());
  Members members;
  for (const ZipMember& member : all)
    if (member.name.starts_with(folder)) members[member.name.substr(folder.size())] = &member;
  return members;
}

const ZipMember& member_called(const Members& members, std::string_view name, const std::string& place) {
  const auto found = members.find(name);
  if (found == members.end()) throw Error(place + "damaged: expected the member " + quoted_briefly(name));
  if (!found->second->problem.empty()) throw Error(place + std::string(name) + ": " + found->second->problem);
  return *found->second;
}

bool is_big_endian(const ZipArchive& archive, const Members& members, const std::string& place) {
  if (!members.contains("byteorder")) return false;  // before PyTorch 2.1 nothing was said of it
  const std::string order = archive.begin(member_called(members, "byteorder", place), 16);
  if (order != "little" && order != "big")
    throw Error(place + "byteorder: expected little or big, got " + quoted_briefly(order));
  return order == "big";
}

TensorFile open_archive(const std::filesystem::path& path, const Token& progress) {
  const std::string place = path.string() + ": ";
  const auto archive = std::make_shared<const ZipArchive>(path);
  const Members members = members_of(*archive, place);
  if (members.contains("constants.pkl"))
    throw Error(place + "holds a TorchScript program, only tensors can be read: save module.state_dict()");
  const ZipMember& member = member_called(members, "data.pkl", place);
  if (member.size > longest_pickle)
    throw Error(place + "data.pkl: expected at most " + std::to_string(longest_pickle) + " bytes, got " +
                std::to_string(member.size));
  PickleBytes bytes(fetch_of(archive, member), 0, member.size, place, progress);
  const Pickle pickle = read_pickle(bytes);
  const FindStorage find = [&](const PickledStorage& storage) -> Stored {
    const ZipMember& data = member_called(members, "data/" + storage.key, place);
    return {data.size, data.deflated, fetch_of(archive, data)};
  };
  return file_of_pickle(path, pickle, find, is_big_endian(*archive, members, place), progress);
}

using Storages = std::map<std::string, std::pair<uint64_t, uint64_t>, std::less<>>;  ///< begin and length

/// Where the storages stand that follow the pickles of an older file, each after the count of its numbers.
Storages storages_after(PickleBytes& bytes, const Pickle& pickle, const Pickle& keys, uint64_t file_size) {
  std::map<std::string_view, const PickledStorage*> known;
  for (const PickledStorage& storage : pickle.storages) known.emplace(storage.key, &storage);
  Storages storages;
  uint64_t at = bytes.at();
  for (const auto index : keys.values[keys.root].items) {
    const std::string& key = keys.values[index].text;
    const auto storage = known.find(key);
    if (storage == known.end()) bytes.fail("expected the key of a storage, got " + quoted_briefly(key));
    if (file_size - at < 8) bytes.fail("expected a storage, got the end");
    bytes.go_to(at);
    const uint64_t n_bytes = bytes_of(bytes.number(8), storage->second->dtype);
    at = bytes.at();
    if (n_bytes > file_size - at)
      bytes.fail("expected a storage of " + std::to_string(n_bytes) + " bytes, got the end");
    storages[key] = {at, n_bytes};
    at += n_bytes;
  }
  return storages;
}

/// A pickle of plain values alone.
Pickle read_plain(PickleBytes& bytes) {
  Pickle pickle = read_pickle(bytes);
  if (!pickle.foreign.empty()) refuse_name(pickle.foreign, bytes.place());
  return pickle;
}

TensorFile open_legacy(const std::filesystem::path& path, const Token& progress) {
  const std::string place = path.string() + ": ";
  const auto file = std::make_shared<const OpenFile>(path);
  PickleBytes bytes(fetch_of(file, 0), 0, file->size(), place, progress);
  read_plain(bytes);  // the magic number
  const Pickle protocol = read_plain(bytes);
  if (const auto version = protocol.values[protocol.root].whole; version != legacy_protocol)
    throw Error(place + "expected version 1001 of PyTorch's older format, got " + std::to_string(version));
  read_plain(bytes);  // of the machine that wrote it; the storages are little-endian on any
  const Pickle pickle = read_pickle(bytes), keys = read_plain(bytes);
  const Storages storages = storages_after(bytes, pickle, keys, file->size());
  const FindStorage find = [&](const PickledStorage& storage) -> Stored {
    const auto found = storages.find(storage.key);
    if (found == storages.end())
      throw Error(place + "damaged: expected the storage " + quoted_briefly(storage.key));
    return {found->second.second, false, fetch_of(file, found->second.first)};
  };
  return file_of_pickle(path, pickle, find, false, progress);
}

bool looks_like_pickle(std::string_view begin) {
  return begin.size() > 2 && begin[0] == '\x80' && begin[1] >= 2 && begin[1] <= 5;
}

/// A pickle that torch.save did not write is read only to say what is in it.
[[noreturn]] void refuse_pickle(const std::filesystem::path& path, const Token& progress) {
  const std::string place = path.string() + ": ";
  const auto file = std::make_shared<const OpenFile>(path);
  PickleBytes bytes(fetch_of(file, 0), 0, file->size(), place, progress);
  const Pickle pickle = read_pickle(bytes);
  if (!pickle.foreign.empty()) named_tensors(pickle, "", place);
  throw Error(place + "is a pickle without tensors: save them with torch.save, numpy.savez or safetensors");
}

}  // namespace

bool is_pickle_of_pytorch(std::string_view member) {
  return member == "data.pkl" || (member.ends_with("/data.pkl") && std::ranges::count(member, '/') == 1);
}

bool looks_like_pytorch(std::string_view begin) {
  constexpr std::size_t name_at = 30, length_at = 26;  // in the record of the first member
  if (!looks_like_zip(begin)) return looks_like_pickle(begin);
  return begin.size() > name_at &&
         is_pickle_of_pytorch(begin.substr(name_at, little_endian(begin.substr(length_at, 2))));
}

TensorFile open_pytorch(const std::filesystem::path& path, const Token& progress) {
  const std::string begin = read_begin(path, first_bytes);
  if (looks_like_zip(begin)) return open_archive(path, progress);
  if (!looks_like_pickle(begin) && looks_like_old_pickle(begin)) refuse_old_pickle(path.string() + ": ");
  if (!looks_like_pickle(begin))
    throw Error(path.string() +
                ": expected a file of torch.save, an archive or a pickle, which begins in another way");
  if (begin.find(legacy_magic) != begin.npos) return open_legacy(path, progress);
  refuse_pickle(path, progress);
}

}  // namespace core::formats::readers
