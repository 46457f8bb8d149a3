#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/files/tensor.hpp"
#include "core/model/transformer.hpp"
#include "core/training/network.hpp"
#include "core/training/task.hpp"

/// A trained network as a whole model: in memory, and as files of transformers.
namespace core::training {

/// Returns why no model of transformers computes what a setup trains: "no model of transformers has --mask
/// off"; "" if one does.
std::string no_export_reason(const TrainingSetup& setup);

/// The files of a model of transformers.
struct ModelFiles {
  std::string config, tokenizer, tokenizer_config;  ///< JSON
  std::vector<formats::Tensor> tensors;             ///< of model.safetensors, in float32
};
/// Returns the files of a network, as the family of models that has its formula; a missing MLP is one of
/// zeros. Throws core::Error with no_export_reason().
ModelFiles model_files(const Network& network, const TaskData& data);

/// Returns a file of float32 tensors.
std::string safetensors_bytes(const std::vector<formats::Tensor>& tensors);

/// Returns a network as a whole model of that name in memory, on which every tool works; computed in float32,
/// without bugs, dropout and ablation. Throws core::Error for a network without norms.
std::shared_ptr<const transformer::Transformer> whole_model(const Network& network, const TaskData& data,
                                                            const std::string& name);

}  // namespace core::training
