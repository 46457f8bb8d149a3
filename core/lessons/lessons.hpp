#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/address.hpp"
#include "core/graph/model.hpp"
#include "core/graph/stages.hpp"
#include "core/graph/trace.hpp"
#include "core/model/text_reading.hpp"
#include "core/training/training_run.hpp"

/// Guided lessons. Their text and conditions are data in assets/lessons; for conditions see expression.hpp.
namespace core::lessons {

/// An illustration that a step shows in addition to the stages.
enum class Exhibit {
  none,
  library,
  single_query,
  double_loop,
  next_token,
  moved_rows,
  versions,
  mask_methods,
  entropy
};

/// The model at the start of a step and the current model, each with its trace of the displayed sequence.
struct StepState {
  const attention::Model& start;
  const attention::Trace& before;
  const attention::Model& model;
  const attention::Trace& trace;
};

/// The readings of a whole model at the start of a step and now, and the selected head.
struct WholeStepState {
  const transformer::FullModel& whole;
  const experiment::TextReading& before;
  const experiment::TextReading& now;
  std::size_t layer = 0, head = 0;
  const experiment::TextReading* unedited = nullptr;  ///< now without edits, of the first of two prompts
  std::optional<explain::CellAddress> pinned = {};    ///< in that layer
  std::string source = {};                            ///< the selected one of that cell, or ""
};

/// A run of training at the start of a step and now.
struct RunStepState {
  const training::TrainingRun& before;
  const training::TrainingRun& now;
};

/// The start of a step: a preset with a JSON merge patch (RFC 7386) of its session file, or with a sentence;
/// or a session of its own; or a text for a whole model, the second one if there is a first, or a session of
/// it; or a run of a task, with other options of its setup, that has learned for some steps.
struct Start {
  std::string preset, change, sentence, session, text;
  std::optional<experiment::FirstPrompt> first;
  std::string task;
  training::TrainingSetup setup = {};
  std::size_t n_steps = 0;
  std::uint64_t seed = 0;                                 ///< of the sentence's embeddings
  std::size_t layer = 0;                                  ///< displayed, of a whole model
  std::optional<experiment::SavedExperiment> saved = {};  ///< of a session of a whole model
};

/// One step: an idea, something to change, and the expected observation.
struct LessonStep {
  std::string title;
  std::string text;                ///< one to three sentences
  std::vector<std::string> focus;  ///< landmarks of the parts of the window that it refers to
  std::vector<std::string> words;  ///< terms of the glossary
  std::string try_it;
  Start start;
  std::string done;  ///< an expression: false at the start, true once the user has tried it
  std::string seen;  ///< description of the result, with {expressions}
  Exhibit exhibit = Exhibit::none;
  std::optional<attention::Stage> predict;  ///< the user predicts which cell of this stage changes most
  bool pins_token = false;  ///< of a whole model: the most probable token at the start stays selected
};

/// A lesson: a sequence of steps.
struct Lesson {
  std::string name;   ///< "000", "dropout"
  std::string title;  ///< "Causal attention in eleven steps"
  std::string about;  ///< one line
  std::string group;  ///< "Notebooks"
  int minutes = 0;    ///< that it takes, about
  std::vector<LessonStep> steps;
  std::string model;                  ///< the folder of the whole model that it uses, or ""
  std::string source = {};            ///< its text, if it is not one of the program's
  std::filesystem::path folder = {};  ///< of its file, in which model is, or ""

  /// Returns whether it is about runs of training.
  bool trains() const { return !steps.front().start.task.empty(); }
};

/// Returns whether a JSON file is a lesson of somebody's own, by its beginning.
bool is_lesson_text(std::string_view beginning);

/// Reads a lesson of somebody's own: JSON as in assets/lessons, with "attnscope_lesson": 1. Its steps may
/// omit start, which is then that of the step before. A start may name a session in the folder of the lesson.
///
/// Tries every step that is not of a whole model: it can be started, is not done yet, and its result can be
/// written. Expressions only read numbers. file is its name in errors; without a folder it can name no file.
/// Throws core::Error, "FILE: line N: PATH: expected …, got …".
Lesson parse_lesson(std::string text, const std::string& file, const std::filesystem::path& folder);

/// Returns the first draft of a lesson that begins with a session, of the whole model in a folder unless
/// model is ""; focus: the landmark that its first step points at.
std::string lesson_draft(const std::string& title, const std::string& model, const std::string& session,
                         const std::string& focus);

/// Returns all lessons: one for each notebook, then the others.
const std::vector<Lesson>& lessons();

/// Returns the lesson of that name, or nullptr.
const Lesson* find_lesson(std::string_view name);

/// Returns the model that a step starts with, or the experiment, for which a session needs the whole model.
/// Throws core::Error if it has the other, or the session does not fit the model.
attention::Model model_at_start(const LessonStep& step);
experiment::Experiment experiment_at_start(const LessonStep& step,
                                           const transformer::FullModel* model = nullptr);

/// Returns whether a step was tried, and a description of the result, with its numbers.
bool is_done(const LessonStep& step, const StepState& state);
bool is_done(const LessonStep& step, const WholeStepState& state);
bool is_done(const LessonStep& step, const RunStepState& state);
std::string seen(const LessonStep& step, const StepState& state);
std::string seen(const LessonStep& step, const WholeStepState& state);
std::string seen(const LessonStep& step, const RunStepState& state);

/// A cell that changed, and its change.
struct CellChange {
  std::size_t row = 0, column = 0;
  double by = 0;  ///< absolute; infinite where one of the two numbers is not finite
};

/// Returns the cells of a stage of one head that differ from the start of a step, the largest change first;
/// none where the stage has another shape than before.
std::vector<CellChange> changed_cells(const StepState& state, attention::Stage stage, std::size_t head);

/// Returns "Which cell of Weights will change most? Click it.", for a step with a prediction.
std::string question(const LessonStep& step);

/// Returns the verdict on a prediction: right when no cell changed more, up to rounding; "" where nothing
/// changed.
std::string verdict(const std::vector<CellChange>& moved, std::size_t row, std::size_t column);

/// A term of the field and what it means, in one or two sentences.
struct Term {
  std::string word, meaning;
};

/// Returns all terms, in the order in which a reader meets them.
const std::vector<Term>& glossary();

/// Returns the term of that word, or nullptr; ASCII letters match in either case.
const Term* find_term(std::string_view word);

}  // namespace core::lessons
