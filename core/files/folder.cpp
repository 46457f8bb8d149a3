#include "core/files/folder.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <system_error>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/number.hpp"
#include "core/files/file.hpp"
#include "core/files/left_out.hpp"
#include "core/files/list_folder.hpp"
#include "core/files/tensor_formats.hpp"

namespace core::formats::readers {
namespace {

namespace fs = std::filesystem;

/// A tensor of a file that is open, or several of one shape that together have one dimension more.
struct Part {
  TensorInfo info;
  std::shared_ptr<const TensorFile> file;  ///< where it is, without members
  std::string name;                        ///< and under which name
  std::vector<Part> members;
};

using Parts = std::map<std::string, Part>;

Tensor read(const Part& part, std::span<const std::size_t> leading, const Token& progress) {
  if (part.file) return part.file->read(part.name, leading, progress);
  if (!leading.empty()) return read(part.members[leading[0]], leading.subspan(1), progress);
  Tensor whole;
  for (const Part& member : part.members) {
    Tensor tensor = read(member, {}, progress);
    whole.numbers.insert(whole.numbers.end(), tensor.numbers.begin(), tensor.numbers.end());
    whole.texts.insert(whole.texts.end(), tensor.texts.begin(), tensor.texts.end());
    whole.row_labels = std::move(tensor.row_labels);
    whole.column_labels = std::move(tensor.column_labels);
    whole.printed_to = std::max(whole.printed_to, tensor.printed_to);
  }
  static_cast<TensorInfo&>(whole) = part.info;
  return whole;
}

/// The number at the end of a name after a word: 3 for "weights.head3" after ".head".
std::optional<std::size_t> number_after(const std::string& name, const std::string& word) {
  const std::size_t at = name.rfind(word);
  return at == name.npos ? std::nullopt
                         : text::parse_whole_number(std::string_view(name).substr(at + word.size()));
}

/// Parts 0, 1, 2 … of one shape as one; what they are called together begins the message when they are not.
Part stacked(const std::string& name, std::map<std::size_t, Part> members, const std::string& place) {
  Part whole;
  for (auto& [index, member] : members) {
    if (index != whole.members.size())
      throw Error(place + name + ": number " + std::to_string(whole.members.size()) + " is missing");
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

void add(Parts& parts, const std::string& name, Part part, const std::string& place) {
  part.info.name = name;
  if (!parts.emplace(name, std::move(part)).second) throw Error(place + "two tensors are called " + name);
}

std::vector<fs::path> sorted_entries(const fs::path& path) {
  Listing listing = list_folder(path);
  if (listing.error != 0) throw Error(cannot_be_read(path, listing.error));
  return std::move(listing.paths);
}

/// Whether an entry is a folder; one that leads nowhere is none, one that cannot be looked at is refused.
bool is_folder(const fs::path& path) {
  std::error_code error;
  const bool is = fs::is_directory(path, error);
  if (error && error != std::errc::no_such_file_or_directory)
    throw Error(cannot_be_read(path, error.value()));
  return is;
}

/// The files of tensors in a folder that can be opened. What cannot is left out, unless it stands in a row
/// with others, as heads do, which would be another without it.
std::vector<std::shared_ptr<const TensorFile>> files_in(const fs::path& folder, bool is_in_a_row,
                                                        LeftOut& left_out, const Token& progress) {
  std::vector<std::shared_ptr<const TensorFile>> files;
  for (const fs::path& path : sorted_entries(folder)) {
    progress.add(0);
    if (!has_tensor_ending(path) || is_folder(path)) continue;
    const auto open = [&] {
      auto file = std::make_shared<const TensorFile>(open_tensors(path, progress));
      if (path.extension() == ".json") return;  // of an index that is right, the files are here
      for (const std::string& note : file->notes()) left_out.add(path.filename().string() + ": " + note);
      files.push_back(std::move(file));
    };
    if (is_in_a_row || number_after(path.stem().string(), ".head"))
      open();
    else
      left_out.unless(open);
  }
  return files;
}

/// A checkpoint is often kept as pytorch_model.bin beside model.safetensors: the same tensors once more.
bool repeats(const TensorFile& file, const Parts& parts) {
  return std::string_view(file.format()) == "pytorch" &&
         std::ranges::any_of(file.tensors(), [&](const TensorInfo& info) {
           const auto known = parts.find(info.name);
           return known != parts.end() && known->second.file &&
                  std::string_view(known->second.file->format()) == "safetensors";
         });
}

Parts parts_of(const fs::path& folder, bool is_in_a_row, LeftOut& left_out, const Token& progress) {
  const std::string place = folder.string() + ": ";
  Parts parts;
  std::map<std::string, std::map<std::size_t, Part>> heads;
  auto files = files_in(folder, is_in_a_row, left_out, progress);
  std::ranges::stable_sort(files, {},
                           [](const auto& file) { return std::string_view(file->format()) == "pytorch"; });
  for (const auto& file : files) {
    if (repeats(*file, parts)) {
      left_out.note(file->path().filename().string() + " has the tensors of a .safetensors file beside it");
      continue;
    }
    for (const TensorInfo& info : file->tensors()) {
      Part part{info, file, info.name, {}};
      const auto head = number_after(info.name, ".head");
      if (!head)
        add(parts, info.name, std::move(part), place);
      else if (!heads[info.name.substr(0, info.name.rfind(".head"))].emplace(*head, std::move(part)).second)
        throw Error(place + "two tensors are called " + info.name);
    }
  }
  for (auto& [name, members] : heads) add(parts, name, stacked(name, std::move(members), place), place);
  return parts;
}

}  // namespace

TensorFile open_folder(const fs::path& path, const Token& progress) {
  const std::string place = path.string() + ": ";
  LeftOut left_out(place, (path / "").string());
  Parts parts = parts_of(path, false, left_out, progress);
  std::map<std::string, std::map<std::size_t, Part>> sequences;
  for (const fs::path& entry : sorted_entries(path)) {
    const auto sequence = number_after(entry.filename().string(), "sequence");
    if (!sequence || !is_folder(entry)) continue;
    for (auto& [name, part] : parts_of(entry, true, left_out, progress))
      sequences[name].emplace(*sequence, std::move(part));
  }
  for (auto& [name, members] : sequences) add(parts, name, stacked(name, std::move(members), place), place);
  if (parts.empty())
    left_out.fail("expected a folder of tensors (.npy, .csv, .safetensors …), got none in it");
  std::vector<TensorFile::Entry> entries;
  for (auto& [name, part] : parts)
    entries.push_back({part.info, [shared = std::make_shared<const Part>(part)](
                                      std::span<const std::size_t> leading, const Token& p) {
                         return read(*shared, leading, p);
                       }});
  return {path, "folder", std::move(entries), left_out.notes()};
}

}  // namespace core::formats::readers
