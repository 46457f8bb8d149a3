#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/files/tensor.hpp"

namespace support {

/// A tensor to be written as float32, or as another type of numbers that its bytes are then of.
struct Written {
  std::string name;
  core::formats::Shape shape;
  std::vector<float> numbers;
  const char* dtype = "F32";  ///< or "BOOL", "I32", "U8"
};

/// A .safetensors file, written byte by byte.
void write(const std::filesystem::path& path, const std::vector<Written>& tensors);

/// Rows that sum to 1, another in every row of every matrix: first of two keys 0, 0.01, 0.02, …
Written rows_of_two(const std::string& name, core::formats::Shape shape, float step = 0.01f);

}  // namespace support
