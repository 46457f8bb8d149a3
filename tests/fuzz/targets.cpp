#include "tests/fuzz/targets.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "core/base/utf8.hpp"
#include "tests/support/temporary_directory.hpp"

namespace fuzz {

using namespace core::formats;

std::vector<Target> targets() {
  std::vector<Target> all;
  for (const auto family : {tensor_targets(), session_targets(), model_targets()})
    all.insert(all.end(), family.begin(), family.end());
  return all;
}

Target target_called(std::string_view name) {
  for (const Target& target : targets())
    if (target.name == name) return target;
  std::abort();
}

void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "wrong: %s\n", what);
  std::abort();
}

void expect_line(const std::string& line) {
  const std::string shown = core::text::printable(line);
  expect(!shown.empty() && shown.find('\n') == shown.npos, "an error is one line");
}

MemoryFile::MemoryFile(Bytes bytes) : descriptor_(::memfd_create("fuzz", MFD_CLOEXEC)) {
  expect(::write(descriptor_.number(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()),
         "there is memory for the file");
}

void read_all(const TensorFile& file) {
  constexpr std::uint64_t most = 1 << 16;
  for (const TensorInfo& info : file.tensors()) {
    expect(core::text::printable(info.name) == info.name, "a name does nothing to a terminal");
    const auto count = count_of(info.shape);
    if (!count || *count > most) continue;
    attempt([&] {
      const Tensor tensor = file.read(info.name);
      expect((info.dtype == Dtype::text ? tensor.texts.size() : tensor.numbers.size()) == *count,
             "a tensor has as many numbers as its shape says");
    });
  }
}

Seeds fixtures(std::initializer_list<const char*> names) {
  Seeds seeds;
  for (const std::string name : names) seeds.push_back(support::bytes_of(FIXTURES "/" + name));
  return seeds;
}

}  // namespace fuzz
