#pragma once

#include "core/files/gguf.hpp"
#include "core/files/tensor.hpp"
#include "core/model/architecture.hpp"

namespace core::transformer {

/// The architecture that the metadata of a GGUF file describes; what of it only tensors tell comes from
/// these.
///
/// Throws core::Error, "FILE: KEY: …", as architecture_of(config) does.
Architecture architecture_of(const formats::GgufMetadata& metadata, const formats::TensorFile& file);

}  // namespace core::transformer
