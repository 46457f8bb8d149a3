#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/files/tensor.hpp"

namespace support {

/// A tensor to be written as float32 or as another type.
struct Written {
  std::string name;
  core::formats::TensorShape shape;
  std::vector<float> numbers;
  const char* dtype = "F32";  ///< or "BOOL", "I32", "U8"
};

/// Writes a .safetensors file byte by byte.
void write(const std::filesystem::path& path, const std::vector<Written>& tensors);

/// Returns rows over two keys that sum to 1; the weight of the first key is 0, step, 2·step, …
Written rows_of_two(const std::string& name, core::formats::TensorShape shape, float step = 0.01f);

}  // namespace support
