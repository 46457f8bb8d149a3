// Real files with bytes changed, cut, doubled and swapped at random must be read or refused in one line.
// Meant to be run under the sanitizers as well.
#include <gmock/gmock.h>

#include <random>

#include "core/files/readers.hpp"
#include "core/files/tensor_formats.hpp"
#include "core/out/numpy.hpp"
#include "tests/core/files/known_tensors.hpp"
#include "tests/support/error_of.hpp"

namespace core::formats::readers {
namespace {

using testing::StartsWith;

std::string damaged(std::string bytes, std::mt19937& random) {
  const auto below = [&](std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
  };
  for (std::size_t k = below(4) + 1; k > 0 && !bytes.empty(); --k) {
    // Most changes should hit the headers, at the beginning and at the end.
    const std::size_t near = std::min<std::size_t>(bytes.size(), 200);
    const std::size_t at = below(3) == 0   ? below(bytes.size())
                           : below(2) == 0 ? below(near)
                                           : bytes.size() - 1 - below(near);
    switch (below(6)) {
      case 0:
        bytes[at] = static_cast<char>(below(256));
        break;
      case 1:
        bytes[at] = static_cast<char>(bytes[at] ^ 1 << below(8));
        break;
      case 2:
        bytes.resize(at);
        break;
      case 3:
        bytes.insert(at, bytes.substr(at, below(20)));
        break;
      case 4:
        bytes.erase(at, below(20));
        break;
      default:
        for (std::size_t b = at; b < std::min(at + 8, bytes.size()); ++b) bytes[b] = below(2) ? '\xff' : '\0';
    }
  }
  return bytes;
}

/// Returns whether a file of these bytes, or part of it, is refused. Expects it to be read or refused in one
/// line, with no tensor of more numbers than such small files can hold.
bool is_refused(const std::filesystem::path& path, const std::string& bytes) {
  support::put_bytes(path, bytes);
  bool some_left_out = false;
  const std::string error = support::error_of([&] {
    const TensorFile file = open_tensors(path);
    for (const TensorInfo& info : file.tensors()) {
      if (count_of(info.shape).value_or(max_numbers + 1) > max_numbers) continue;
      EXPECT_LE(count_of(info.shape).value(), std::size_t{1} << 20) << "more than the file can hold";
      file.read(info.name);
    }
    some_left_out = !file.notes().empty();
  });
  if (error == "no error") return some_left_out;
  EXPECT_THAT(error, StartsWith(path.string() + ": "));
  EXPECT_EQ(error.find('\n'), error.npos) << error;
  return true;
}

/// Tries files of that name with contents from damaged_bytes(); expects at least one to be refused.
template <class DamagedBytes>
void expect_read_or_refused(const std::string& name, int tries, DamagedBytes damaged_bytes) {
  const support::TemporaryDirectory directory;
  const auto path = directory / std::filesystem::path(name).filename();
  int refused = 0;
  for (int k = 0; k < tries && !testing::Test::HasFailure(); ++k)
    refused += is_refused(path, damaged_bytes());
  EXPECT_GT(refused, 0) << name;
}

void expect_read_or_refused(const std::string& name, int tries) {
  std::mt19937 random(20);
  expect_read_or_refused(name, tries,
                         [&, whole = support::bytes_of(folder + name)] { return damaged(whole, random); });
}

/// Does the same with damage to one member of an archive, with correct checksums.
void expect_members_read_or_refused(const std::string& name, const std::string& member, int tries) {
  const ZipArchive archive(folder + name);
  std::vector<std::pair<std::string, std::string>> contents;
  for (const ZipMember& m : archive.members()) contents.emplace_back(m.name, archive.begin(m, m.size));
  std::mt19937 random(22);
  expect_read_or_refused(name, tries, [&] {
    std::vector<ZipEntry> members;
    for (const auto& [called, content] : contents)
      members.push_back({called, [bytes = called.ends_with(member) ? damaged(content, random) : content] {
                           return bytes;
                         }});
    return zip_bytes(members);
  });
}

TEST(DamagedFile, CutAnywhereIsRefusedInOneLine) {
  const struct {
    std::string name;
    std::size_t step;
    const char* words;
  } files[] = {{"npy/f4.little.C.npy", 1, "expected"},
               {"zip64.npz", 1, "damaged ZIP archive: "},
               {"types.safetensors", 3, "expected"},
               {"pytorch/state_dict.pt", 23, ""},
               {"pytorch/state_dict.legacy.pt", 23, ""}};
  const support::TemporaryDirectory directory;
  for (const auto& [name, step, words] : files) {
    const std::string whole = support::bytes_of(folder + name);
    const auto path = directory / std::filesystem::path(name).filename();
    for (std::size_t length = 0; length < whole.size(); length += step) {
      support::put_bytes(path, whole.substr(0, length));
      const std::string error = support::error_of([&] { open_tensors(path); });
      ASSERT_THAT(error, StartsWith(path.string() + ": " + words)) << length;
      ASSERT_EQ(error.find('\n'), error.npos);
    }
  }
}

TEST(DamagedFile, OfAnyFormatIsReadOrRefusedInOneLine) {
  expect_read_or_refused("npy/f4.little.F.npy", 150);
  expect_read_or_refused("words.npz", 150);
  expect_read_or_refused("zip64.npz", 150);
  expect_read_or_refused("stored.npz", 30);
  expect_read_or_refused("types.safetensors", 150);
  for (const char* name : {"types", "views", "nested", "protocol4"})
    for (const char* ending : {".pt", ".legacy.pt"})
      expect_read_or_refused("pytorch/" + std::string(name) + ending, 40);
  expect_read_or_refused("printed/torch_grad.txt", 150);
  expect_read_or_refused("printed/numpy_three_dimensions.txt", 150);
  expect_read_or_refused("table.csv", 150);
}

TEST(DamagedFile, OfAnArchiveWithRightChecksumsIsReadOrRefusedInOneLine) {
  for (const char* name : {"types", "views", "state_dict", "nested", "parameters", "protocol3", "protocol5"})
    expect_members_read_or_refused("pytorch/" + std::string(name) + ".pt", "/data.pkl", 60);
  expect_members_read_or_refused("words.npz", "weights.npy", 60);
}

}  // namespace
}  // namespace core::formats::readers
