#include "core/formats/readers/npz.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/error.hpp"
#include "core/formats/readers/npy.hpp"
#include "core/formats/readers/zip.hpp"

namespace core::formats::readers {
namespace {

constexpr std::string_view ending = ".npy";
constexpr std::uint64_t short_header = 4096;

TensorFile::Entry entry_of_member(const std::shared_ptr<const ZipArchive>& archive, const ZipMember& member,
                                  const std::string& file_name) {
  const std::string name = member.name.substr(0, member.name.size() - ending.size());
  const std::string place = file_name + ": " + name + ": ";
  // The header is read unchecked; the numbers are given out only after the checksum of all has been found
  // right.
  const Fetch begin = [&](std::uint64_t from, std::uint64_t count, std::string& buffer, const Token&) {
    if (buffer.size() < from + count) buffer = archive->begin(member, std::max(short_header, from + count));
    if (buffer.size() < from + count) throw Error(place + "expected a .npy header, got the end of the file");
    return std::string_view(buffer).substr(from, count);
  };
  RawTensor tensor = npy_tensor(name, place, member.size, begin);
  tensor.at_once = member.deflated;
  tensor.fetch = [archive, member, data_at = member.size - byte_count(tensor).value()](
                     std::uint64_t from, std::uint64_t count, std::string& buffer, const Token& progress) {
    buffer = archive->bytes(member, data_at + from, count, progress);
    return std::string_view(buffer);
  };
  return entry_of(std::move(tensor));
}

}  // namespace

TensorFile open_npz(const std::filesystem::path& path, const Token& progress) {
  const auto archive = std::make_shared<const ZipArchive>(path);
  std::vector<TensorFile::Entry> entries;
  for (const ZipMember& member : archive->members()) {
    progress.add(0);
    if (member.name.ends_with("data.pkl"))
      throw Error(
          path.string() +
          ": PyTorch's own files hold Python objects (pickle), which are never opened: save the tensors with "
          "numpy.savez or safetensors.torch.save_file");
    if (member.name.ends_with(ending)) entries.push_back(entry_of_member(archive, member, path.string()));
  }
  if (entries.empty()) throw Error(path.string() + ": expected an archive of .npy files, got none in it");
  return {path, "npz", std::move(entries)};
}

}  // namespace core::formats::readers
