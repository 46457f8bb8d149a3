#pragma once

#include "core/files/config.hpp"
#include "core/files/tensor.hpp"

namespace core::formats::checkpoints {

/// Throws core::Error, "FILE: TENSOR: …", when the weights of a file are quantised: whole numbers that mean
/// something with their scales alone, as GPTQ, AWQ and bitsandbytes keep them.
void refuse_quantised(const TensorFile& file, const Config& config);

}  // namespace core::formats::checkpoints
