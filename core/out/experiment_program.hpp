#pragma once

#include <string>

#include "core/model/experiment.hpp"

namespace core::formats {

/// Library whose hooks a program uses.
enum class HookLibrary { transformers, transformer_lens };

struct ExperimentProgramOptions {
  HookLibrary library = HookLibrary::transformers;
  std::string title = {};     ///< its docstring
  bool has_own_model = true;  ///< else the names `model` and torch.nn modules are those of the caller
  std::size_t n_listed = 10;  ///< tokens after each predicted position
};

/// Returns a Python program that repeats an experiment: the model as its library loads it, hooks for ablated
/// heads, for edited layers and for patches, and the most probable next tokens with and without them, as
/// `predict` prints.
///
/// Ablated heads are set to 0 before the output projection; an edited layer is computed in float64 by its own
/// class, from the layer's input and projections of which only changed numbers are literals. Patched parts
/// are kept in a pass of the first prompt, and put into that of the second; of two prompts it prints the
/// watched logit difference too. For a model that predicts nothing it prints the change of each row of the
/// last hidden state. pass: of an attached model. Throws core::Error when the model's parts have no names in
/// PyTorch, or an edited layer has injected bugs or given stages.
std::string experiment_program_text(const transformer::FullModel& model,
                                    const experiment::Experiment& experiment,
                                    const ExperimentProgramOptions& options,
                                    const transformer::Pass* pass = nullptr);

}  // namespace core::formats
