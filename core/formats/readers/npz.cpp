#include "core/formats/readers/npz.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

#include "core/error.hpp"
#include "core/formats/readers/npy.hpp"
#include "core/formats/readers/open_file.hpp"
#include "core/formats/readers/zip.hpp"

namespace core::formats::readers {
namespace {

constexpr std::string_view ending = ".npy";
constexpr std::uint64_t short_header = 4096;

/// What is known of a member once it has been read; several threads may read it.
class Known {
 public:
  std::shared_ptr<const ZipMarks> marks() const {
    const std::lock_guard lock(mutex_);
    return marks_;
  }
  void keep(std::shared_ptr<const ZipMarks> marks) {
    const std::lock_guard lock(mutex_);
    marks_ = std::move(marks);
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const ZipMarks> marks_;
};

TensorFile::Entry entry_of_member(const SharedFile& file, const ZipMember& member) {
  const std::string name = member.name.substr(0, member.name.size() - ending.size());
  const std::string place = file->path().string() + ": " + name + ": ";
  // The header is read unchecked; the numbers are given out only after the checksum of all has been found
  // right.
  const Fetch begin = [&](std::uint64_t from, std::uint64_t count, std::string& buffer, const Token&) {
    if (buffer.size() < from + count) buffer = zip_begin(*file, member, std::max(short_header, from + count));
    if (buffer.size() < from + count) throw Error(place + "expected a .npy header, got the end of the file");
    return std::string_view(buffer).substr(from, count);
  };
  RawTensor tensor = npy_tensor(name, place, member.size, begin);
  const std::uint64_t data_at = member.size - byte_count(tensor).value();
  // Whoever reads one layer after the other waits once for all of it to be unpacked and its checksum to be
  // right.
  const auto known = std::make_shared<Known>();
  tensor.at_once = member.deflated;
  tensor.fetch = [file, member, data_at, known](std::uint64_t from, std::uint64_t count, std::string& buffer,
                                                const Token& progress) -> std::string_view {
    std::shared_ptr<const ZipMarks> marks = known->marks();
    if (marks && !member.deflated) {
      file->read(member.begin + data_at + from, count, buffer);
      return buffer;
    }
    buffer = zip_bytes(*file, member, data_at + from, count, marks, progress);
    known->keep(std::move(marks));
    return buffer;
  };
  return entry_of(std::move(tensor));
}

}  // namespace

TensorFile open_npz(const std::filesystem::path& path, const Token& progress) {
  const auto file = std::make_shared<const OpenFile>(path);
  std::vector<TensorFile::Entry> entries;
  for (const ZipMember& member : zip_members(*file)) {
    progress.add(0);
    if (member.name.ends_with("data.pkl"))
      throw Error(
          path.string() +
          ": PyTorch's own files hold Python objects (pickle), which are never opened: save the tensors with "
          "numpy.savez or safetensors.torch.save_file");
    if (member.name.ends_with(ending)) entries.push_back(entry_of_member(file, member));
  }
  if (entries.empty()) throw Error(path.string() + ": expected an archive of .npy files, got none in it");
  return {path, "npz", std::move(entries)};
}

}  // namespace core::formats::readers
