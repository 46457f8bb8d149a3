#pragma once

#include <cstddef>
#include <cstdint>

#include "core/files/tensor.hpp"

namespace core::formats {

/// How GGUF packs numbers: so many in a block of so many bytes.
struct GgufType {
  std::uint32_t number;  ///< in a file
  const char* name;
  std::size_t block, bytes;
  Dtype dtype;  ///< of a plain number in the file
  /// Turns one block into the float32 numbers that it stands for; nullptr of plain numbers. Source:
  /// github.com/ggml-org/ggml, ggml-quants.c.
  void (*decode)(const char* bytes, float* numbers);
};

/// What numbers of a type are read as: float64 stays what it is, all others fit into float32.
Dtype dtype_read(const GgufType& type);

/// The type of a number, or nullptr when it is not known here.
const GgufType* gguf_type(std::uint32_t number);

}  // namespace core::formats
