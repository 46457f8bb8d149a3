#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "app/session/document.hpp"
#include "app/session/full_model_reading.hpp"
#include "app/session/live_trace.hpp"
#include "app/session/view.hpp"
#include "core/lessons/exhibits.hpp"
#include "core/lessons/lessons.hpp"

namespace app {

/// State of the displayed step of a lesson.
struct LessonState {
  const core::lessons::Lesson* lesson = nullptr;
  std::size_t step = 0;
  std::set<std::size_t> done;  ///< completed steps of this lesson
  std::string seen;            ///< result of this step in words, or "" before it was tried
  std::vector<core::lessons::ExhibitPicture> pictures;  ///< of its exhibit
  std::uint64_t version = 0;                            ///< of the pictures' numbers
  std::vector<core::lessons::CellChange>
      moved;  ///< changed cells of the predicted stage, largest change first

  const core::lessons::LessonStep& shown() const { return lesson->steps[step]; }
};

/// Returns progress as text, "5 0,1,4": the step, then the completed ones.
std::string progress_text(const LessonProgress& progress);
/// Parses such a text; nothing when it is malformed or names a step that the lesson does not have.
std::optional<LessonProgress> parse_progress(std::string_view text, std::size_t n_steps);

/// Returns the progress in a lesson, or nullptr, also where progress is nullptr.
const LessonProgress* progress_of(const std::map<std::string, LessonProgress>* progress,
                                  const std::string& lesson);
/// Returns the first lesson that was left between its first and last step, or nullptr.
const core::lessons::Lesson* unfinished_lesson(const std::map<std::string, LessonProgress>* progress);

/// Description of a lesson as an undo step.
constexpr const char* lesson_undo_name = "the lesson";

/// The lesson under way, the user's own work that is set aside for it, and the progress in every lesson.
class Lessons {
 public:
  /// Sets the document aside and replaces it with the lesson, at a step, or where it was left.
  ///
  /// model is the whole model of a lesson about one, own_reading the readings of a whole model that is set
  /// aside. Throws core::Error if there is no such step or, as begin() does, if the model cannot read its
  /// text.
  void start(const core::lessons::Lesson& lesson, std::optional<std::size_t> step,
             const core::transformer::ModelRef& model, Document& document, View& view,
             std::optional<FullModelReading::SavedReadings> own_reading);
  /// Starts a step of the lesson under way.
  void begin(std::size_t step, Document& document, View& view);
  /// Restores the user's own work; returns the readings of its whole model.
  std::optional<FullModelReading::SavedReadings> leave(Document& document, View& view);
  /// Checks whether the displayed step is completed; live is of the document's model.
  void assess(const Document& document, const LiveTrace& live, std::size_t sequence);
  /// The same for a lesson that trains, from the current run, which began at the step's start.
  void assess(const std::shared_ptr<const core::training::TrainingRun>& now);
  /// The same for a lesson about a whole model, from its current reading and the displayed head.
  void assess(const ReadingRef& now, const ReadingRef& unedited, const FullModelState& full_model,
              const View& view);
  /// Returns the whole model's readings when the step began, none in other lessons.
  BothReadings first_readings() const { return active_ ? active_->first : BothReadings(); }

  bool is_under_way() const { return active_.has_value(); }
  /// Returns the state of the lesson under way, or nullptr.
  const LessonState* state() const { return active_ ? &active_->state : nullptr; }
  /// Returns the user's own work: the document that was set aside, or the given one.
  const Document& own(const Document& document) const { return active_ ? active_->own : document; }
  Document& own(Document& document) { return active_ ? active_->own : document; }

  /// Keeps a lesson of somebody's own, which it returns; its name is that of its file.
  const core::lessons::Lesson& add(core::lessons::Lesson lesson);
  /// Returns the newest lesson of that name, also one that was added, or nullptr.
  const core::lessons::Lesson* find(const std::string& name) const;

  std::map<std::string, LessonProgress> progress;  ///< by the lesson's name

 private:
  struct ActiveLesson {
    Document own;
    View own_view;
    std::optional<FullModelReading::SavedReadings> own_reading;
    core::attention::Trace before;  // at the start of the step, for the displayed sequence
    std::size_t before_sequence = 0;
    std::uint64_t assessed = 0;  // version of the trace that was checked last
    core::transformer::ModelRef model;
    BothReadings first;
    // Reading of a whole model that was checked last, with its layer and head.
    std::tuple<ReadingRef, std::size_t, std::size_t, std::optional<CellRef>, std::string> assessed_full_model;
    std::shared_ptr<const core::training::TrainingRun> first_run, assessed_run;
    LessonState state;
  };
  template <class StepState>
  void take(const StepState& moment);

  std::vector<std::unique_ptr<const core::lessons::Lesson>> added_;  // kept, as states refer to them
  std::optional<ActiveLesson> active_;
};

}  // namespace app
