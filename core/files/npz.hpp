#pragma once

#include "core/files/tensor.hpp"

namespace core::formats::readers {

/// Opens a .npz file: a ZIP archive of .npy files, each a tensor under its name without the ending.
///
/// A member that cannot be read is left out with a note. Throws core::Error when the archive is damaged or
/// nothing in it can be read.
TensorFile open_npz(const std::filesystem::path& path, const Token& progress);

}  // namespace core::formats::readers
