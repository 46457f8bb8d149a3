#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/files/tensor_file.hpp"

namespace core::formats::readers {

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
