#pragma once

#include <filesystem>
#include <string_view>

#include "core/files/tensor.hpp"

namespace core::formats::readers {

/// Whether bytes begin as a pickle does, or as an archive of torch.save.
bool looks_like_pytorch(std::string_view begin);

/// Whether a member of a ZIP archive is what torch.save calls its pickle.
bool is_pickle_of_pytorch(std::string_view member);

/// Opens what torch.save wrote, as a ZIP archive or in the older way, when it holds tensors and plain values.
///
/// Nothing in it is run. Throws core::Error that names what else it holds (a torch.nn.Module, a function),
/// and when it is damaged or a tensor lies beyond its storage. Source: PyTorch, torch/serialization.py.
TensorFile open_pytorch(const std::filesystem::path& path, const Token& progress);

}  // namespace core::formats::readers
