#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "core/base/error.hpp"
#include "core/files/tensor.hpp"
#include "core/system/file.hpp"

/// What the targets share.
namespace fuzz {

/// Ends the program when it does not hold, so that a fuzzer keeps what led there.
void expect(bool holds, const char* what);

/// An error is one line that can be shown.
void expect_line(const std::string& line);

/// Does what may throw core::Error and nothing else.
template <class Action>
void attempt(Action action) {
  try {
    action();
  } catch (const core::Error& error) {
    expect_line(error.what());
  }
}

/// A file without a name that holds the bytes.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes);
  std::filesystem::path path() const { return "/proc/self/fd/" + std::to_string(descriptor_.number()); }

 private:
  core::system::Descriptor descriptor_;
};

/// Reads all of a file whose tensors claim no more numbers than a small one has.
void read_all(const core::formats::TensorFile& file);

/// Opens the bytes with a reader, and reads all of them.
template <core::formats::TensorFile (*open)(const std::filesystem::path&, const core::Token&)>
void open_bytes(std::string_view bytes) {
  attempt([&] {
    const MemoryFile file(bytes);
    const core::Token token;
    read_all(open(file.path(), token));
  });
}

}  // namespace fuzz
