#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/files/json.hpp"
#include "core/files/tensor.hpp"

/// Weights that a file stores in several tensors, and tensors that belong to a weight.
namespace core::formats::checkpoints {

/// Returns a file whose weights are single tensors: FP8 numbers times their scales, weight norms (g · v/‖v‖),
/// and weights plus LoRA or DoRA adapters, of the same file or of an adapter next to it. Its notes name what
/// was applied.
///
/// config_json is the config.json of the checkpoint, or nothing. Throws core::Error, "FILE: TENSOR: …", when
/// scales, an adapter or a parametrization of a weight cannot be applied, or weights are quantized as
/// integers, as in GPTQ, AWQ and bitsandbytes. Sources: DeepSeek-V3, weight_dequant; Hu et al. 2021 (LoRA);
/// Liu et al. 2024 (DoRA); PyTorch, torch.nn.utils.weight_norm; PEFT, LoraConfig.
std::shared_ptr<const TensorFile> compose_weights(std::shared_ptr<const TensorFile> file,
                                                  const std::optional<Json>& config_json);

/// Names of the files of an adapter that compose_weights() reads next to a checkpoint.
std::span<const char* const> adapter_files();

/// Returns the tensors that belong to used weights by their names and are not used themselves, in the order
/// of the names: q_proj.weight_scale and q_proj.lora_A.weight belong to q_proj.weight.
std::vector<std::string> unused_tensors_of_weights(const TensorFile& file, std::span<const std::string> used);

/// Returns whether a tensor of a module is no parameter but a buffer, by its name and shape: a square mask,
/// rotary frequencies, or a constant that its code knows.
bool is_buffer(const TensorInfo& tensor);

}  // namespace core::formats::checkpoints
