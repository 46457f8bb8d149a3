#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "app/session/view.hpp"
#include "core/base/text.hpp"
#include "core/editing/history.hpp"
#include "core/graph/explain.hpp"
#include "core/graph/model.hpp"
#include "core/graph/trace.hpp"
#include "core/importing/import.hpp"
#include "core/model/text_reading.hpp"

namespace app {

using ReadingRef = std::shared_ptr<const core::experiment::TextReading>;

/// An open whole model, its edits, and the layer that is the document's model.
struct FullModelState {
  core::transformer::ModelRef model;
  core::experiment::Experiment experiment;
  std::size_t layer = 0;            ///< of the document's model; experiment.layer is the requested one
  core::attention::Model unedited;  ///< that layer as computed by the pass, with ablated heads
  /// Identity of the computation that unedited was made from; another one may have the same numbers.
  std::shared_ptr<const void> computation_id = nullptr;
};

/// Returns a copy without the pass, whose numbers neither undo nor recovery needs; nullptr for nullptr.
inline std::shared_ptr<const FullModelState> without_pass(
    const std::shared_ptr<const FullModelState>& full_model) {
  if (!full_model) return nullptr;
  auto copy = std::make_shared<FullModelState>(*full_model);
  copy->computation_id = nullptr;
  return copy;
}

/// State that undo restores: a model, and the whole model that it is a layer of, or nullptr.
struct UndoEntry {
  core::attention::Model model;
  std::shared_ptr<const FullModelState> full_model = nullptr;
};

/// Returns the models that count towards the memory budget of undo.
inline std::vector<const core::attention::Model*> models_in(const UndoEntry& work) {
  std::vector<const core::attention::Model*> models{&work.model};
  if (!work.full_model) return models;
  models.push_back(&work.full_model->unedited);
  for (const auto& [layer, edit] : work.full_model->experiment.layers) models.push_back(&edit.model);
  return models;
}

struct TensorSource;  // in opening.hpp

/// Where a model came from.
struct Origin {
  std::string title;                                     ///< the file's name, or the preset's title
  std::string preset = {};                               ///< or ""
  std::optional<std::filesystem::path> path = {};        ///< where it is saved
  std::string stamp = {};                                ///< of that file when it was read or written, or ""
  std::shared_ptr<const TensorSource> source = nullptr;  ///< the tensors that it was made from, or nullptr
  core::importing::ImportReport import_report = {};      ///< how they were used
  std::vector<std::string> notes = {};                   ///< on their import, a sentence each
  bool is_learned = false;                               ///< a step of a run of training, which is in no file
};

/// A document: its current model, the saved and the opened one, and the undo history. For a whole model it is
/// the displayed layer.
struct Document {
  core::attention::Model model, saved, first;
  Origin origin;
  core::editing::HistoryOf<UndoEntry> history = core::editing::HistoryOf<UndoEntry>();
  std::shared_ptr<const FullModelState> full_model = nullptr;  ///< that the model is a layer of
  core::experiment::Experiment saved_experiment = {};
  std::size_t n_steps_saved = 0;  ///< in the history, when it was saved
  /// Identity of this document, whatever its model becomes.
  std::shared_ptr<const char> identity = std::make_shared<const char>();

  /// Whether it is a layer of a model in another process, whose edits cannot be saved.
  bool is_attached() const { return full_model && full_model->model->description().is_attached; }
  /// Whether it is one of a model that no session can name: attached, or a step of a run.
  bool has_no_file() const { return is_attached() || origin.is_learned; }
  bool is_modified() const {
    if (!full_model) return !(model == saved);
    // The prompt and the displayed layer are not edits of the model.
    const core::experiment::Experiment& now = full_model->experiment;
    return now.heads_off != saved_experiment.heads_off || now.layers != saved_experiment.layers ||
           now.first != saved_experiment.first || now.patches != saved_experiment.patches;
  }
  /// Returns the number of steps between the saved and the current state.
  std::size_t n_unsaved_edits() const {
    if (full_model) {
      std::size_t n = full_model->experiment.heads_off.size() + full_model->experiment.patches.size();
      for (const auto& [layer, edit] : full_model->experiment.layers)
        n += std::max<std::size_t>(1, edit.words.size());
      return n;
    }
    const std::size_t now = history.n_applied();
    return std::max(now, n_steps_saved) - std::min(now, n_steps_saved);
  }
};

/// Returns a new document with a model.
inline Document document_of(const core::attention::Model& model, Origin origin) {
  return {model, model, model, std::move(origin)};
}

/// Available undo and redo.
struct UndoStatus {
  bool can_undo = false, can_redo = false;
  std::string undo_words, redo_words;
  std::size_t n_forgotten = 0;  ///< oldest steps that were dropped
};

/// State of the document, for the window.
struct DocumentState {
  std::string title;
  std::optional<std::filesystem::path> path = {};  ///< where it is saved
  std::string preset;                              ///< the preset it was made from, or ""
  bool modified = false;
  bool is_preset = false;  ///< the model is still the preset's, to the last bit
  UndoStatus steps;
  std::vector<std::filesystem::path> recent;         ///< newest first
  bool of_tensors = false;                           ///< it was made from a file of tensors to choose from
  std::vector<std::string> layers;                   ///< of that file; "" for one without a name
  std::size_t layer = 0;                             ///< the one that the model was made from
  core::importing::ImportReport import_report = {};  ///< how the file was used
  std::vector<std::string> notes = {};               ///< on its import, a sentence each
  bool of_run = false;                               ///< the model is a step of a run of training
};

/// Returns why nothing can be undone: "there is nothing to undo: 3 older steps were dropped, to save memory".
inline std::string nothing_to_undo(const UndoStatus& steps) {
  const std::string words = "there is nothing to undo";
  if (steps.n_forgotten == 0) return words;
  return words + ": " + core::text::counted(steps.n_forgotten, "older step") +
         (steps.n_forgotten == 1 ? " was" : " were") + " dropped, to save memory";
}

/// One line at the bottom of the window.
struct Message {
  std::string text;
  bool is_error = false;
};

class FullModelReading;  // in full_model_reading.hpp
class Learning;          // in learning.hpp

/// The displayed state: a model, its graph and its trace of the displayed sequence, and the view restricted
/// to that model.
struct Displayed : core::explain::Computation {
  core::attention::StageSet stages;  ///< that the model has
  std::uint64_t version;             ///< changes with the trace's numbers
  const Look& look;
  const Selection& selection;

  const core::attention::Sequence& sequence() const { return model.sequences[look.sequence]; }
  bool has(Stage stage) const { return contains(stages, stage); }
};

/// The newest state, which edits change; it may have no trace yet.
struct Pending {
  const core::attention::Model& model;
  const Look& look;
  const Selection& selection;
  const FullModelState* full_model = nullptr;  ///< that the model is a layer of, or nullptr
  const FullModelReading* reading = nullptr;   ///< computed for its text
  const LayersLook* layers = nullptr;
  const Learning* learning = nullptr;           ///< a run of training, or nullptr where none can be
  const LearningLook* learning_look = nullptr;  ///< its view
};

/// Progress in one lesson, kept from one run to the next.
struct LessonProgress {
  std::size_t step = 0;
  std::set<std::size_t> done;
  friend bool operator==(const LessonProgress&, const LessonProgress&) = default;
};

/// State that an action may read.
struct ActionContext {
  Displayed displayed;
  Pending pending;
  const Settings& settings;
  const Forms& forms;
  const DocumentState& document;
  /// Returns the current color ranges by stage and head; empty where no picture is drawn.
  std::function<std::map<std::pair<Stage, std::size_t>, ColorLimits>()> color_limits = {};
  /// Progress in every lesson, by its name; or nullptr.
  const std::map<std::string, LessonProgress>* progress = nullptr;
};

}  // namespace app
