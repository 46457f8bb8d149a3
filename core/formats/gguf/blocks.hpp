#pragma once

#include <cstddef>
#include <cstdint>

namespace core::formats {

/// How GGUF packs numbers: so many in a block of so many bytes.
struct GgufType {
  std::uint32_t number;  ///< in a file
  const char* name;
  std::size_t block, bytes;
  /// Turns one block into the float32 numbers that it stands for. Source: github.com/ggml-org/ggml,
  /// ggml-quants.c.
  void (*decode)(const char* bytes, float* numbers);
};

/// The type of a number, or nullptr when it is not known here.
const GgufType* gguf_type(std::uint32_t number);

}  // namespace core::formats
