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
#include "core/graph/model.hpp"
#include "core/graph/trace.hpp"
#include "core/importing/import.hpp"
#include "core/model/reading.hpp"

namespace app {

/// An open whole model, its edits, and the layer that is the document's model.
struct WholeModel {
  core::transformer::ModelRef model;
  core::experiment::Experiment experiment;
  std::size_t layer = 0;           ///< of the document's model; experiment.layer is the requested one
  core::attention::Model of_pass;  ///< that layer as the pass gives it, with ablated heads
  /// The computation of the pass that of_pass was made of; another one may have the same numbers.
  std::shared_ptr<const void> computed = nullptr;
};

/// The same without the pass, whose numbers neither undo nor recovery needs; nullptr of none.
inline std::shared_ptr<const WholeModel> without_pass(const std::shared_ptr<const WholeModel>& whole) {
  if (!whole) return nullptr;
  auto copy = std::make_shared<WholeModel>(*whole);
  copy->computed = nullptr;
  return copy;
}

/// What undo brings back: a model, and the whole model that it is a layer of, or nullptr.
struct Undoable {
  core::attention::Model model;
  std::shared_ptr<const WholeModel> whole = nullptr;
};

/// For the bytes that undo may take.
inline std::vector<const core::attention::Model*> models_in(const Undoable& work) {
  std::vector<const core::attention::Model*> models{&work.model};
  if (!work.whole) return models;
  models.push_back(&work.whole->of_pass);
  for (const auto& [layer, edit] : work.whole->experiment.layers) models.push_back(&edit.model);
  return models;
}

struct TensorSource;  // in opening.hpp

/// Where a model came from.
struct Origin {
  std::string title;                                     ///< the file's name, or the preset's title
  std::string preset = {};                               ///< or ""
  std::optional<std::filesystem::path> path = {};        ///< where it is saved
  std::string stamp = {};                                ///< of that file when it was read or written, or ""
  std::shared_ptr<const TensorSource> source = nullptr;  ///< the tensors that it was made of, or nullptr
  core::importing::Account account = {};                 ///< what became of them
  std::vector<std::string> notes = {};                   ///< what else must be known of them, a sentence each
};

/// A piece of work: a model, as it is, as it was saved and as it was opened, and the way back. Of a whole
/// model it is the layer that is looked at.
struct Document {
  core::attention::Model model, saved, first;
  Origin origin;
  core::editing::HistoryOf<Undoable> history = core::editing::HistoryOf<Undoable>();
  std::shared_ptr<const WholeModel> whole = nullptr;  ///< that the model is a layer of
  core::experiment::Experiment saved_experiment = {};
  std::size_t n_steps_saved = 0;  ///< of the history, when it was saved
  /// Of this piece of work alone, whatever its model becomes.
  std::shared_ptr<const char> mark = std::make_shared<const char>();

  /// Whether it is a layer of a model in another process, whose edits no file keeps.
  bool is_attached() const { return whole && whole->model->description().is_attached; }
  bool is_modified() const {
    if (!whole) return !(model == saved);
    // The prompt and the displayed layer are not edits of the model.
    const core::experiment::Experiment& now = whole->experiment;
    return now.heads_off != saved_experiment.heads_off || now.layers != saved_experiment.layers;
  }
  /// Steps from what was saved to what is there now.
  std::size_t n_unsaved_edits() const {
    if (whole) {
      std::size_t n = whole->experiment.heads_off.size();
      for (const auto& [layer, edit] : whole->experiment.layers)
        n += std::max<std::size_t>(1, edit.words.size());
      return n;
    }
    const std::size_t now = history.n_done();
    return std::max(now, n_steps_saved) - std::min(now, n_steps_saved);
  }
};

/// A piece of work that begins with a model.
inline Document document_of(const core::attention::Model& model, Origin origin) {
  return {model, model, model, std::move(origin)};
}

/// What can be undone and done again.
struct Steps {
  bool can_undo = false, can_redo = false;
  std::string undo_words, redo_words;
  std::size_t n_forgotten = 0;  ///< that undo has dropped
};

/// What the window says of the document.
struct DocumentState {
  std::string title;
  std::optional<std::filesystem::path> path = {};  ///< where it is saved
  std::string preset;                              ///< the preset it was made from, or ""
  bool modified = false;
  bool is_preset = false;  ///< the model is still the preset's, to the last bit
  Steps steps;
  std::vector<std::filesystem::path> recent;  ///< newest first
  bool of_tensors = false;                    ///< it was made of a file of tensors, in which is to be chosen
  std::vector<std::string> layers;            ///< of that file, "" for a number alone
  std::size_t layer = 0;                      ///< the one that the model was made of
  core::importing::Account account = {};      ///< what became of the file
  std::vector<std::string> notes = {};        ///< what else must be known of it, a sentence each
};

/// Why nothing can be undone: "there is nothing to undo: 3 older steps were dropped, to save memory".
inline std::string nothing_to_undo(const Steps& steps) {
  const std::string words = "there is nothing to undo";
  if (steps.n_forgotten == 0) return words;
  return words + ": " + core::text::counted(steps.n_forgotten, "older step") +
         (steps.n_forgotten == 1 ? " was" : " were") + " dropped, to save memory";
}

/// One line at the foot of the window.
struct Message {
  std::string text;
  bool is_error = false;
};

class WholeReading;  // in whole_reading.hpp

/// What is shown: a trace, the model that it is of, and what is looked at as far as that model has it.
struct Displayed {
  const core::attention::Model& model;
  const core::attention::Trace& trace;  ///< of the shown sequence
  std::uint64_t version;                ///< of the trace: another number, other numbers
  const Look& look;
  const Selection& selection;

  const core::attention::Sequence& sequence() const { return model.sequences[look.sequence]; }
};

/// What edits change, whatever is shown: it may have no trace yet.
struct Pending {
  const core::attention::Model& model;
  const Look& look;
  const Selection& selection;
  const WholeModel* whole = nullptr;      ///< that the model is a layer of, or nullptr
  const WholeReading* reading = nullptr;  ///< of that: what is known of its text
  const LayersLook* layers = nullptr;
};

/// Where a person stands in one lesson, from one run of the program to the next.
struct LessonProgress {
  std::size_t step = 0;
  std::set<std::size_t> done;
  friend bool operator==(const LessonProgress&, const LessonProgress&) = default;
};

/// What an action may look at.
struct Situation {
  Displayed displayed;
  Pending pending;
  const Settings& settings;
  const Forms& forms;
  const DocumentState& document;
  /// The ends of all colors as they are now; empty where no picture is drawn.
  std::function<std::map<std::pair<Stage, std::size_t>, Ends>()> color_ends = {};
  /// How far each lesson was taken, by its name; or nullptr.
  const std::map<std::string, LessonProgress>* progress = nullptr;
};

}  // namespace app
