#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fuzz {

/// Something that takes bytes of strangers, and bytes that it accepts, to begin with.
struct Target {
  const char* name;
  void (*run)(
      std::string_view bytes);  ///< throws nothing, whatever the bytes are; ends the program when wrong
  std::vector<std::string> (*seeds)();
  std::vector<const char*> words = {};  ///< that a fuzzer may put in, as it would not find them
};

/// All of them, family by family.
std::vector<Target> targets();

/// The target of that name. Ends the program when there is none.
Target target_called(std::string_view name);

/// Files of tensors, the unpickler, an index of several files.
std::span<const Target> tensor_targets();
/// Sessions, JSON, what a window remembers.
std::span<const Target> session_targets();
/// GGUF, tokenizers, configurations, and the names of tensors: of checkpoints and of dumps of whole models.
std::span<const Target> model_targets();
/// What people type, paste or put behind options.
std::span<const Target> typed_targets();

}  // namespace fuzz
