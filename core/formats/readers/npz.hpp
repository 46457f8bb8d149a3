#pragma once

#include "core/formats/tensors/tensor_file.hpp"

namespace core::formats::readers {

/// Opens a .npz file: a ZIP archive of .npy files, each a tensor under its name without the ending.
///
/// Throws core::Error when the archive or a header is damaged, or holds no .npy file (as PyTorch's .pt).
TensorFile open_npz(const std::filesystem::path& path, const Token& progress);

}  // namespace core::formats::readers
