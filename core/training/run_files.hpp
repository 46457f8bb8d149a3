#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/token.hpp"
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

/// Returns a setup with the members of a JSON object like that of a run. Throws core::Error if it has others,
/// or the setup cannot be trained.
TrainingSetup changed_setup(TrainingSetup setup, const formats::Json& members);

/// A run that was learned again from its session.
struct ReopenedRun {
  std::shared_ptr<const TrainingRun> run;
  std::string note = {};  ///< that this processor rounds otherwise than the one that saved it, or ""
};

/// Everything that determines a run up to a step, so that it can be learned again.
struct SavedRun {
  TrainingSetup setup;  ///< the first one
  std::shared_ptr<const TaskData> data;
  std::vector<RunChange> changes;
  std::size_t n_steps = 0;
  std::optional<double> loss;  ///< of the last step, if it is a number
};
SavedRun saved_run(const TrainingRun& run);

/// Returns a run as a session, JSON without learned numbers.
std::string run_session(const SavedRun& run);
/// Parses a session. Throws core::Error, "FILE: PATH: expected …, got …".
SavedRun parse_run(std::string_view text, const std::string& file);

/// Returns whether a text is such a session, judging by its first key, or a file begins with one.
bool is_run_session(std::string_view text);
bool is_run_session_file(const std::filesystem::path& path);

/// Learns a run again up to its step; reports the share that is done. Throws core::Error as parse_run() and
/// TrainingRun::change() do, and Stopped.
ReopenedRun reopen_run(std::string_view text, const std::string& file, const StopToken& progress);

/// Throws core::Error, "PATH: …", unless there is nothing at a path, and its parent is a folder.
void require_new_folder(const std::filesystem::path& path);

}  // namespace core::training
