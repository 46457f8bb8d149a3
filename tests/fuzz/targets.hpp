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

/// A function of untrusted bytes, with valid inputs as seeds.
struct Target {
  const char* name;
  void (*run)(Bytes bytes);  ///< never throws; ends the program on a bug
  Seeds (*seeds)();
  std::vector<const char*> words = {};  ///< dictionary of words that a fuzzer would not find
};

/// Returns all targets, family by family.
std::vector<Target> targets();

/// Returns the target of that name. Ends the program if there is none.
Target target_called(std::string_view name);

/// Returns the targets of tensor files, the unpickler, shard indexes, and typed, pasted or command-line text.
std::span<const Target> tensor_targets();
/// Returns the targets of sessions, JSON and the window's saved state.
std::span<const Target> session_targets();
/// Returns the targets of GGUF, tokenizers, configs, and tensor names of checkpoints and whole-model dumps.
std::span<const Target> model_targets();

/// Ends the program unless `holds`, so that a fuzzer keeps the input.
void expect(bool holds, const char* what);

/// Expects an error to be one displayable line.
void expect_line(const std::string& line);

/// Runs an action that may throw core::Error and nothing else.
template <class Action>
void attempt(Action action) {
  try {
    action();
  } catch (const core::Error& error) {
    expect_line(error.what());
  }
}

/// An unnamed file that holds the bytes.
class MemoryFile {
 public:
  explicit MemoryFile(Bytes bytes);
  std::filesystem::path path() const { return "/proc/self/fd/" + std::to_string(descriptor_.number()); }

 private:
  core::system::Descriptor descriptor_;
};

/// Reads all tensors of a file that claim no more numbers than a small file has.
void read_all(const core::formats::TensorFile& file);

/// Reads files under tests/fixtures.
Seeds fixtures(std::initializer_list<const char*> names);

}  // namespace fuzz
