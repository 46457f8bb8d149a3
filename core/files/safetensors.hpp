#pragma once

#include <filesystem>
#include <string_view>

#include "core/files/tensor_file.hpp"

namespace core::formats::readers {

/// Whether bytes begin as a .safetensors file does: a length, then a JSON object.
bool looks_like_safetensors(std::string_view begin);

/// Opens a .safetensors file by its header alone, whatever its size.
///
/// F64 F32 F16 BF16 F8_E4M3 F8_E5M2, integers and BOOL, little-endian, row-major. Throws core::Error when the
/// header is longer than the file or no such JSON, names a tensor twice or of another type, or when the
/// tensors' bytes do not lie one after the other from the first byte after the header to the last of the
/// file. Source: github.com/huggingface/safetensors, "Format".
TensorFile open_safetensors(const std::filesystem::path& path, const Token& progress);

}  // namespace core::formats::readers
