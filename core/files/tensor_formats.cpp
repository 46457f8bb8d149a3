#include "core/files/tensor_formats.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <system_error>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/base/words.hpp"
#include "core/files/gguf.hpp"
#include "core/files/readers.hpp"
#include "core/files/table.hpp"
#include "core/system/file.hpp"

namespace core::formats::readers {

namespace {

using Path = std::filesystem::path;
using namespace std::string_view_literals;

constexpr std::string_view pointer_begins = "version https://git-lfs.github.com/spec/";

/// Returns a size in decimal units, as on download pages: "548 MB".
std::string size_text(std::uint64_t bytes) {
  if (bytes < 1000) return std::to_string(bytes) + " bytes";
  if (bytes < 1000 * 1000) return std::to_string(bytes / 1000) + " kB";
  if (bytes < 1000 * 1000 * 1000) return std::to_string(bytes / (1000 * 1000)) + " MB";
  char text[32];
  std::snprintf(text, sizeof text, "%.1f GB", static_cast<double>(bytes) * 1e-9);
  return text;
}

std::string lfs_pointer_message(std::string_view begin) {
  constexpr std::string_view size = "\nsize ";
  std::string words = "is a Git LFS pointer";
  if (const std::size_t at = begin.find(size); at != begin.npos) {
    begin.remove_prefix(at + size.size());
    if (const auto bytes = text::consume_unsigned(begin)) words += " of " + size_text(*bytes);
  }
  return words + ", not the file itself: run git lfs pull";
}

bool has_hdf5_block(std::string_view begin) {
  constexpr std::string_view signature = "\x89HDF\r\n\x1a\n";
  for (const std::size_t at : {0, 512, 1024, 2048})  // allowed offsets of the signature
    if (at < begin.size() && begin.substr(at).starts_with(signature)) return true;
  return false;
}

/// Recognizes ONNX by the version of its format and its producer: fields 1 and 2 of its message.
bool is_onnx(const Path& path, std::string_view begin) {
  if (path.extension() == ".onnx") return true;
  const std::size_t length = begin.size() > 4 ? static_cast<unsigned char>(begin[3]) : 0;
  return begin.size() > 4 + length && begin[0] == '\x08' && begin[1] > 0 && begin[1] < 32 &&
         begin[2] == '\x12' && length > 0 &&
         std::ranges::all_of(begin.substr(4, length), [](unsigned char c) { return std::isprint(c); });
}

/// Recognizes the index of a checkpoint by LevelDB's magic number at its end, its data only by their name.
bool is_tensorflow(const Path& path, std::string_view begin) {
  const std::string name = path.filename().string();
  if (name.find(".data-0") != name.npos && name.find("-of-0") != name.npos) return true;
  if (name == "saved_model.pb" || begin.starts_with("model_checkpoint_path:")) return true;
  constexpr std::string_view footer = "\x57\xfb\x80\x8b\x24\x75\x47\xdb";
  const system::OpenFile file(path);
  return file.size() > footer.size() && file.bytes(file.size() - footer.size(), footer.size()) == footer;
}

bool is_web_page(std::string_view begin) {
  return begin.starts_with("<!DOCTYPE html") || begin.starts_with("<!doctype html") ||
         begin.starts_with("<html");
}

/// Returns whether bytes are not text, which may begin with any word.
bool is_binary(std::string_view begin) {
  return std::ranges::any_of(begin, [](char c) { return c >= 0 && c < '\t'; });
}

/// A known format that is not supported, and advice on its files.
struct UnreadableFormat {
  bool (*matches)(const Path& path, std::string_view begin);
  const char* words;
};

constexpr std::array unreadable_formats{
    UnreadableFormat{
        [](const Path&, std::string_view b) {
          return is_binary(b) && (b.starts_with("lmgg") || b.starts_with("tjgg"));
        },
        "is a file of llama.cpp from before GGUF, which is not read: take a .gguf file of the same model"},
    UnreadableFormat{
        [](const Path&, std::string_view b) { return has_hdf5_block(b); },
        "is an HDF5 file, which is not read: write its arrays with numpy.savez (h5py reads them)"},
    UnreadableFormat{
        [](const Path&, std::string_view b) {
          return b.starts_with("MATLAB ") && b.substr(0, 20).find("MAT-file") != b.npos;
        },
        "is a MATLAB file, which is not read: write its arrays with numpy.savez (scipy.io.loadmat reads them)"},
    UnreadableFormat{[](const Path&, std::string_view b) { return b.size() > 8 && b.substr(4, 4) == "TFL3"; },
                     "is a TensorFlow Lite model, which is not read: write its tensors with numpy.savez"},
    UnreadableFormat{
        [](const Path&, std::string_view b) { return is_binary(b) && b.starts_with("PAR1"); },
        "is a Parquet table, which is not read: write it as .csv, or its arrays with numpy.savez"},
    UnreadableFormat{[](const Path&, std::string_view b) { return b.starts_with("\x1f\x8b"); },
                     "is packed with gzip: unpack it with gunzip first"},
    UnreadableFormat{[](const Path&, std::string_view b) { return b.starts_with("\x28\xb5\x2f\xfd"); },
                     "is packed with Zstandard: unpack it with unzstd first"},
    UnreadableFormat{[](const Path&, std::string_view b) {
                       return b.starts_with(
                           "\xfd"
                           "7zXZ");
                     },
                     "is packed with xz: unpack it with unxz first"},
    UnreadableFormat{
        [](const Path&, std::string_view b) { return b.size() > 262 && b.substr(257, 5) == "ustar"; },
        "is a tar archive: unpack it with tar -xf first"},
    UnreadableFormat{[](const Path&, std::string_view b) { return is_web_page(b); },
                     "is a web page, not a file of tensors: download the file itself"},
    UnreadableFormat{
        [](const Path& p, std::string_view) { return p.extension() == ".msgpack"; },
        "is a msgpack file, as Flax writes it, which is not read: write its arrays with numpy.savez"},
    UnreadableFormat{is_onnx,
                     "is an ONNX model, which is not read: write its initializers with numpy.savez "
                     "(onnx.numpy_helper.to_array reads them)"},
    UnreadableFormat{is_tensorflow,
                     "is of a TensorFlow checkpoint, which is not read: write its variables with numpy.savez "
                     "(tf.train.load_checkpoint reads them)"},
};

}  // namespace

std::string unsupported_format_message(const Path& path, std::string_view begin) {
  if (begin.empty()) return "";  // a folder, or an empty file
  if (begin.starts_with(pointer_begins)) return lfs_pointer_message(begin);
  const auto found = std::ranges::find_if(unreadable_formats,
                                          [&](const UnreadableFormat& f) { return f.matches(path, begin); });
  return found == unreadable_formats.end() ? "" : found->words;
}

namespace {

namespace fs = std::filesystem;

/// A tensor of an open file, or several of one shape that are stacked along a new first dimension.
struct FolderTensor {
  TensorInfo info;
  std::shared_ptr<const TensorFile> file;  ///< its file, if it has no members
  std::string name;                        ///< its name in that file
  std::vector<FolderTensor> members;
};

using FolderTensors = std::map<std::string, FolderTensor>;

Tensor read(const FolderTensor& part, std::span<const std::size_t> leading, const StopToken& progress) {
  if (part.file) return part.file->read(part.name, leading, progress);
  if (!leading.empty()) return read(part.members[leading[0]], leading.subspan(1), progress);
  Tensor whole;
  for (const FolderTensor& member : part.members) {
    Tensor tensor = read(member, {}, progress);
    whole.numbers.insert(whole.numbers.end(), tensor.numbers.begin(), tensor.numbers.end());
    whole.texts.insert(whole.texts.end(), tensor.texts.begin(), tensor.texts.end());
    whole.row_labels = std::move(tensor.row_labels);
    whole.column_labels = std::move(tensor.column_labels);
    whole.printed_precision = std::max(whole.printed_precision, tensor.printed_precision);
  }
  static_cast<TensorInfo&>(whole) = part.info;
  return whole;
}

/// Returns the number at the end of a name after a word: 3 for "weights.head3" after ".head".
std::optional<std::size_t> trailing_number(const std::string& name, const std::string& word) {
  const std::size_t at = name.rfind(word);
  return at == name.npos ? std::nullopt
                         : text::parse_unsigned(std::string_view(name).substr(at + word.size()));
}

/// Stacks parts 0, 1, 2 … of one shape; their common name begins the message if they do not fit.
FolderTensor stack_parts(const std::string& name, std::map<std::size_t, FolderTensor> members,
                         const std::string& place) {
  FolderTensor whole;
  for (auto& [index, member] : members) {
    if (index != whole.members.size())
      throw Error(fmt::format("{}{}: number {} is missing", place, name, whole.members.size()));
    const auto words = [](const TensorInfo& info) {
      return (info.dtype == Dtype::text ? "text " : "") + shape_text(info.shape);
    };
    if (index == 0) whole.info = member.info;
    if (words(member.info) != words(whole.info))
      throw Error(place + name + ": expected every part to be " + words(whole.info) + " as the first, got " +
                  words(member.info));
    whole.members.push_back(std::move(member));
  }
  whole.info.name = name;
  whole.info.shape.insert(whole.info.shape.begin(), whole.members.size());
  return whole;
}

void add(FolderTensors& parts, const std::string& name, FolderTensor part, const std::string& place) {
  part.info.name = name;
  if (!parts.emplace(name, std::move(part)).second) throw Error(place + "two tensors are called " + name);
}

std::vector<fs::path> sorted_entries(const fs::path& path) {
  system::Listing listing = system::list_folder(path);
  if (listing.error != 0) throw Error(system::read_error_message(path, listing.error));
  return std::move(listing.paths);
}

/// Returns whether an entry is a folder; false for a broken link. Throws core::Error if it is not accessible.
bool is_folder(const fs::path& path) {
  std::error_code error;
  const bool is = fs::is_directory(path, error);
  if (error && error != std::errc::no_such_file_or_directory)
    throw Error(system::read_error_message(path, error.value()));
  return is;
}

/// Opens the tensor files in a folder. Skips those that cannot be opened, unless they belong to a series,
/// such as heads, which would be wrong without them.
std::vector<std::shared_ptr<const TensorFile>> open_files_in(const fs::path& folder, bool is_series,
                                                             SkipNotes& skipped, DecimalMark mark,
                                                             const StopToken& progress) {
  std::vector<std::shared_ptr<const TensorFile>> files;
  for (const fs::path& path : sorted_entries(folder)) {
    progress.add(0);
    if (!has_tensor_ending(path) || is_folder(path)) continue;
    if (const auto number = shard_number(path);
        number && list_numbered_shards(path).front() != path.filename())
      continue;  // opened with the first
    const auto open = [&] {
      auto file = std::make_shared<const TensorFile>(open_tensors(path, progress, mark));
      if (path.extension() == ".json") return;  // the shards of a valid index are in this folder
      for (const std::string& note : file->notes()) skipped.add(path.filename().string() + ": " + note);
      files.push_back(std::move(file));
    };
    if (is_series || trailing_number(path.stem().string(), ".head"))
      open();
    else
      skipped.run_or_note(open);
  }
  return files;
}

/// Returns whether a file has the tensors of a .safetensors file, as pytorch_model.bin often does.
bool repeats_safetensors(const TensorFile& file, const FolderTensors& parts) {
  return std::string_view(file.format()) == "pytorch" &&
         std::ranges::any_of(file.tensors(), [&](const TensorInfo& info) {
           const auto known = parts.find(info.name);
           return known != parts.end() && known->second.file &&
                  std::string_view(known->second.file->format()) == "safetensors";
         });
}

FolderTensors collect_parts(const fs::path& folder, bool is_series, SkipNotes& skipped, DecimalMark mark,
                            const StopToken& progress) {
  const std::string place = folder.string() + ": ";
  FolderTensors parts;
  std::map<std::string, std::map<std::size_t, FolderTensor>> heads;
  auto files = open_files_in(folder, is_series, skipped, mark, progress);
  std::ranges::stable_sort(files, {},
                           [](const auto& file) { return std::string_view(file->format()) == "pytorch"; });
  for (const auto& file : files) {
    if (repeats_safetensors(*file, parts)) {
      skipped.note(file->path().filename().string() + " has the tensors of a .safetensors file beside it");
      continue;
    }
    for (const TensorInfo& info : file->tensors()) {
      FolderTensor part{info, file, info.name, {}};
      const auto head = trailing_number(info.name, ".head");
      if (!head)
        add(parts, info.name, std::move(part), place);
      else if (!heads[info.name.substr(0, info.name.rfind(".head"))].emplace(*head, std::move(part)).second)
        throw Error(place + "two tensors are called " + info.name);
    }
  }
  for (auto& [name, members] : heads) add(parts, name, stack_parts(name, std::move(members), place), place);
  return parts;
}

}  // namespace

TensorFile open_folder(const fs::path& path, const StopToken& progress, DecimalMark mark) {
  const std::string place = path.string() + ": ";
  SkipNotes skipped(place, (path / "").string());
  FolderTensors parts = collect_parts(path, false, skipped, mark, progress);
  std::map<std::string, std::map<std::size_t, FolderTensor>> sequences;
  for (const fs::path& entry : sorted_entries(path)) {
    const auto sequence = trailing_number(entry.filename().string(), "sequence");
    if (!sequence || !is_folder(entry)) continue;
    for (auto& [name, part] : collect_parts(entry, true, skipped, mark, progress))
      sequences[name].emplace(*sequence, std::move(part));
  }
  for (auto& [name, members] : sequences)
    add(parts, name, stack_parts(name, std::move(members), place), place);
  if (parts.empty())
    skipped.fail("expected a folder of tensors (.npy, .csv, .safetensors …), got none in it");
  std::vector<TensorEntry> entries;
  for (auto& [name, part] : parts)
    entries.push_back({part.info, [shared = std::make_shared<const FolderTensor>(part)](
                                      std::span<const std::size_t> leading, const StopToken& p) {
                         return read(*shared, leading, p);
                       }});
  return {path, "folder", std::move(entries), skipped.notes()};
}

}  // namespace core::formats::readers

namespace core::formats {

namespace {

using Path = std::filesystem::path;

constexpr std::size_t max_prefix_bytes = 4096;

bool is_text(std::string_view begin) {
  return !begin.empty() && std::ranges::none_of(begin, [](char c) {
    return c >= 0 && c < ' ' && c != '\n' && c != '\r' && c != '\t';
  });
}

constexpr const char* pytorch_endings = ".pt .pth .bin .pkl .ckpt";

/// Returns whether a file's name has one of several endings, separated by spaces.
bool has_any_ending(const Path& path, std::string_view endings) {
  const std::string name = path.filename().string();
  return text::any_word(endings, [&](std::string_view ending) {
    return name.size() > ending.size() && name.ends_with(ending);
  });
}

/// Opens a file whose numbers are not written as text.
template <TensorFile (*open)(const Path&, const StopToken&)>
TensorFile whatever_mark(const Path& path, const StopToken& progress, DecimalMark) {
  return open(path, progress);
}

constexpr std::array tensor_format_table{
    TensorFormat{"folder", "", "a folder of such files, such as attnscope exports",
                 [](const Path& path, std::string_view) { return system::is_folder(path); },
                 readers::open_folder},
    TensorFormat{"npy", ".npy", "NumPy's file of one array",
                 [](const Path& path, std::string_view begin) {
                   return readers::looks_like_npy(begin) || path.extension() == ".npy";
                 },
                 whatever_mark<readers::open_npy>},
    TensorFormat{"npz", ".npz", "NumPy's archive of arrays",
                 [](const Path& path, std::string_view begin) {
                   return (readers::looks_like_zip(begin) && !readers::looks_like_pytorch(begin)) ||
                          path.extension() == ".npz";
                 },
                 whatever_mark<readers::open_npz>},
    TensorFormat{"gguf", ".gguf", "a model of llama.cpp, quantised or not",
                 [](const Path& path, std::string_view begin) {
                   return looks_like_gguf(begin) || path.extension() == ".gguf";
                 },
                 whatever_mark<open_gguf>},
    TensorFormat{"safetensors", ".safetensors", "a checkpoint of Hugging Face",
                 [](const Path& path, std::string_view begin) {
                   return readers::looks_like_safetensors(begin) || path.extension() == ".safetensors";
                 },
                 whatever_mark<readers::open_safetensors>},
    TensorFormat{"index", ".index.json", "a checkpoint of Hugging Face in several files",
                 readers::looks_like_index, whatever_mark<readers::open_index>},
    TensorFormat{"pytorch", pytorch_endings, "what torch.save wrote, if it holds only tensors",
                 [](const Path& path, std::string_view begin) {
                   return readers::looks_like_pytorch(begin) || has_any_ending(path, pytorch_endings);
                 },
                 whatever_mark<readers::open_pytorch>},
    TensorFormat{"table", ".csv .tsv", "a table with or without names of rows and columns",
                 [](const Path& path, std::string_view) {
                   return path.extension() == ".csv" || path.extension() == ".tsv";
                 },
                 readers::open_table},
    TensorFormat{"text", ".txt", "what PyTorch or NumPy printed, a JSON list, or numbers in rows",
                 [](const Path&, std::string_view begin) {
                   return is_text(readers::utf8_text(std::string(begin))) &&
                          (!begin.starts_with('{') || begin.starts_with("{{"));
                 },
                 readers::open_text},
};

}  // namespace

std::string tensor_endings() {
  std::string text;
  for (const TensorFormat& f : tensor_format_table)
    if (*f.endings) text += (text.empty() ? "" : " ") + std::string(f.endings);
  return text;
}

bool is_index_of_tensors(const Path& path) {
  return readers::looks_like_index(path, system::read_prefix(path, max_prefix_bytes));
}

std::span<const TensorFormat> tensor_formats() {
  return tensor_format_table;
}

const TensorFormat& tensor_format_of(const Path& path) {
  const std::string begin = system::read_prefix(path, max_prefix_bytes);
  if (const std::string words = readers::unsupported_format_message(path, begin); !words.empty())
    throw Error(path.string() + ": " + words);
  const auto row = std::ranges::find_if(tensor_format_table,
                                        [&](const TensorFormat& f) { return f.matches(path, begin); });
  if (row == tensor_format_table.end())
    throw Error(path.string() + ": expected a file of tensors (" + tensor_endings() + ")");
  return *row;
}

bool has_tensor_ending(const Path& path) {
  return std::ranges::any_of(tensor_format_table,
                             [&](const TensorFormat& f) { return has_any_ending(path, f.endings); });
}

TensorFile open_tensors(const std::filesystem::path& path) {
  StopToken progress;
  return open_tensors(path, progress);
}

TensorFile open_tensors(const std::filesystem::path& path, const StopToken& progress, DecimalMark mark) {
  if (readers::shard_number(path) && system::is_file(path))
    return readers::open_numbered_shards(path, progress);
  return tensor_format_of(path).open(path, progress, mark);
}

}  // namespace core::formats
