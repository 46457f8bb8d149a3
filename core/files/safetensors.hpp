#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/files/tensor.hpp"

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

/// Whether a file is the index of a checkpoint in several files, by its first bytes and its name.
bool looks_like_index(const std::filesystem::path& path, std::string_view begin);

/// The files that open_index() opens beside an index, each once; none of what is no index, or a broken one.
std::vector<std::string> shards_named_by(const std::filesystem::path& path);

/// Opens the files that an index names, such as model.safetensors.index.json, as one file of tensors.
///
/// They stand in its folder. Throws core::Error when one is missing, lies in another folder, is no file of
/// safetensors or PyTorch, or lacks a tensor that the index says it has.
TensorFile open_index(const std::filesystem::path& path, const Token& progress);

}  // namespace core::formats::readers
