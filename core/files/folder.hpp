#pragma once

#include <filesystem>

#include "core/files/tensor_file.hpp"

namespace core::formats::readers {

/// Opens every file of tensors in a folder as one file of tensors.
///
/// A file of one tensor gives it under its name without the ending; NAME.head0, NAME.head1 … of one shape
/// become NAME with the heads as its first dimension, and the folders sequence0, sequence1 … of an export
/// another before it. The tensors of .safetensors files keep their names, as a checkpoint may come in
/// several; those of a PyTorch file beside them are left out when they are the same. So is, with a note, a
/// file that cannot be opened, but among heads and sequences. Throws core::Error when two tensors have one
/// name, heads are missing or of different shapes, or nothing can be opened.
TensorFile open_folder(const std::filesystem::path& path, const Token& progress);

}  // namespace core::formats::readers
