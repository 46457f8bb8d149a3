#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.hpp"
#include "core/files/tensor.hpp"
#include "core/system/file.hpp"

namespace fuzz {

using Bytes = std::string_view;
using Seeds = std::vector<std::string>;

/// Something that takes bytes of strangers, and bytes that it accepts, to begin with.
struct Target {
  const char* name;
  void (*run)(Bytes bytes);  ///< throws nothing, whatever the bytes are; ends the program when wrong
  Seeds (*seeds)();
  std::vector<const char*> words = {};  ///< that a fuzzer may put in, as it would not find them
};

/// All of them, family by family.
std::vector<Target> targets();

/// The target of that name. Ends the program when there is none.
Target target_called(std::string_view name);

/// Files of tensors, the unpickler, an index of several files; what people type, paste or put behind options.
std::span<const Target> tensor_targets();
/// Sessions, JSON, what a window remembers.
std::span<const Target> session_targets();
/// GGUF, tokenizers, configurations, and the names of tensors: of checkpoints and of dumps of whole models.
std::span<const Target> model_targets();

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
  explicit MemoryFile(Bytes bytes);
  std::filesystem::path path() const { return "/proc/self/fd/" + std::to_string(descriptor_.number()); }

 private:
  core::system::Descriptor descriptor_;
};

/// Reads all of a file whose tensors claim no more numbers than a small one has.
void read_all(const core::formats::TensorFile& file);

/// The bytes of files under tests/fixtures.
Seeds fixtures(std::initializer_list<const char*> names);

}  // namespace fuzz
