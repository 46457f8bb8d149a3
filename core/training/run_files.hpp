#pragma once

#include <filesystem>
#include <string>

#include "core/training/training_run.hpp"

namespace core::training {

/// Returns a run as a JSON object: task, setup, an example text, and lists with an entry for each
/// measurement: step, loss, training_accuracy, fresh_loss, accuracy, heads ({pattern: [layer][head]});
/// milestones; diverged, a step or null.
std::string run_json(const TrainingRun& run);

/// Writes a run into a new folder: the model of its last step, as transformers and attnscope open it;
/// snapshots.safetensors, its tensors at the measured steps of which a snapshot was kept, with these steps as
/// the first axis and in the tensor "steps"; run.json, as run_json() returns it.
///
/// Throws core::Error as model_files() does, and if the folder exists or cannot be written.
void save_run(const TrainingRun& run, const std::filesystem::path& folder);

/// Throws core::Error, "PATH: …", unless there is nothing at a path, and its parent is a folder.
void require_new_folder(const std::filesystem::path& path);

}  // namespace core::training
