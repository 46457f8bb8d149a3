#include "core/files/npz.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/base/error.hpp"
#include "core/files/json.hpp"
#include "core/files/left_out.hpp"
#include "core/files/npy.hpp"
#include "core/files/pytorch.hpp"
#include "core/files/zip.hpp"

namespace core::formats::readers {
namespace {

constexpr std::string_view ending = ".npy";
constexpr std::uint64_t short_header = 4096;

TensorFile::Entry entry_of_member(const std::shared_ptr<const ZipArchive>& archive, const ZipMember& member,
                                  const std::string& file_name) {
  const std::string name = member.name.substr(0, member.name.size() - ending.size());
  const std::string place = file_name + ": " + name + ": ";
  if (!member.problem.empty()) throw Error(place + member.problem);
  // The header is read unchecked; the numbers are given out only after the checksum of all has been found
  // right.
  const Fetch begin = [&](std::uint64_t from, std::uint64_t count, std::string& buffer, const Token&) {
    if (buffer.size() < from + count) buffer = archive->begin(member, std::max(short_header, from + count));
    if (buffer.size() < from + count) throw Error(place + "expected a .npy header, got the end of the file");
    return std::string_view(buffer).substr(from, count);
  };
  RawTensor tensor = npy_tensor(name, place, member.size, begin);
  tensor.deflated = member.deflated;
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
  if (std::ranges::any_of(archive->members(), is_pickle_of_pytorch, &ZipMember::name))
    return open_pytorch(path, progress);
  std::vector<TensorFile::Entry> entries;
  LeftOut left_out(path.string() + ": ");
  for (const ZipMember& member : archive->members()) {
    progress.add(0);
    if (member.name.ends_with(ending))
      left_out.unless([&] { entries.push_back(entry_of_member(archive, member, path.string())); });
    else if (!member.name.ends_with('/'))
      left_out.note(quoted_briefly(member.name) + " is no .npy file");
  }
  if (entries.empty()) left_out.fail("expected an archive of .npy files, got none in it");
  return {path, "npz", std::move(entries), left_out.notes()};
}

}  // namespace core::formats::readers
