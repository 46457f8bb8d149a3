#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.hpp"
#include "core/files/json.hpp"
#include "core/model/experiment.hpp"
#include "core/model/file_mark.hpp"

namespace core::experiment {

/// An experiment as a session file: JSON that names the model's folder or file and holds the text and what
/// was edited, none of the model's own numbers.
///
/// view is a JSON object or "". Of the model only edited layers are read, nothing is computed. Throws
/// core::Error when the model's file cannot be read.
std::string experiment_text(const transformer::Transformer& model, const Experiment& experiment,
                            const std::string& view, const std::filesystem::path& folder);

/// Writes that file atomically. Throws core::Error, which names it.
void save_experiment(const std::filesystem::path& path, const transformer::Transformer& model,
                     const Experiment& experiment, const std::string& view);

/// A session of a whole model that was parsed; its edits are read when the model is open.
struct SavedExperiment {
  std::filesystem::path model;  ///< where the model lies
  std::filesystem::path named;  ///< the same as the session names it
  FileMark mark;
  Experiment experiment;  ///< without its layers
  std::string view;
  std::optional<formats::JsonItems> edits;
};

/// Whether a file is such a session, by its first bytes.
bool is_saved_experiment(const std::filesystem::path& path);
bool is_saved_experiment_text(std::string_view text);

/// Throws core::Error, "FILE: PATH: expected …, got …"; Outside when the model does not lie beside the
/// session and that is refused.
SavedExperiment parse_experiment(std::string_view text, const std::filesystem::path& file,
                                 Elsewhere elsewhere);

/// Makes sure that the model is the one that was saved. Throws core::Error, which says what has changed.
void require_mark(const SavedExperiment& saved, const transformer::Transformer& model,
                  const std::filesystem::path& session);

/// The edits that were saved, of a model; nothing is computed. Throws core::Error as parse_experiment() and
/// tokens_of() do.
Experiment with_saved_edits(const SavedExperiment& saved, const transformer::Transformer& model);

}  // namespace core::experiment
