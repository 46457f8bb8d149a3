#include "tests/fuzz/expecting.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "core/base/utf8.hpp"

namespace fuzz {

using namespace core::formats;

void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "wrong: %s\n", what);
  std::abort();
}

void expect_line(const std::string& line) {
  const std::string shown = core::text::printable(line);
  expect(!shown.empty() && shown.find('\n') == shown.npos, "an error is one line");
}

MemoryFile::MemoryFile(std::string_view bytes) : descriptor_(::memfd_create("fuzz", MFD_CLOEXEC)) {
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

}  // namespace fuzz
