#pragma once

#include <optional>
#include <string>

#include "core/files/tensor.hpp"
#include "core/model/architecture.hpp"

namespace core::transformer {

/// What the tensors of a file are called, and how they lie in it.
class TensorNames {
 public:
  /// Of a file as Hugging Face writes it, whose names may have a prefix, or of GGUF.
  ///
  /// Throws core::Error, "FILE: expected …", when it has no embeddings of tokens.
  TensorNames(const formats::TensorFile& file, const Family& family);

  /// "h.3.ln_1.weight" where the file has it, or nothing.
  std::optional<std::string> find(Role role, const char* ending, std::size_t layer = 0) const;
  /// The same; throws core::Error, "FILE: expected a tensor NAME, …", when there is none.
  std::string require(Role role, const char* ending, std::size_t layer = 0) const;

  bool is_gguf() const { return is_gguf_; }

 private:
  std::string name(Role role, std::size_t layer) const;

  const formats::TensorFile* file_;
  const formats::checkpoints::Names* names_;
  std::string prefix_;
  bool is_gguf_;
};

}  // namespace core::transformer
